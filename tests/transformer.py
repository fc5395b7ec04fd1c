"""A transformer that nobody trained: a layer of BertModel, in memory or as a folder of Hugging Face's layout."""

import json
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, processors
from transformers import BertConfig, BertModel

from heedful.models.pieces import PieceEmbedding
from tests.builders import build_pieces

LIMIT = 100
"""Pieces it has positions for."""


def tiny_bert(dim: int) -> BertModel:
    """A piece for each that `build_pieces` knows; weights far enough from zero that each counts."""
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(build_pieces()),
        hidden_size=dim,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=2 * dim,
        max_position_embeddings=LIMIT,
        initializer_range=0.4,
    )
    return BertModel(config, add_pooling_layer=False)


def tiny_transformer(dim: int) -> PieceEmbedding:
    return PieceEmbedding(tiny_bert(dim), frozen=False)


def tiny_folder(folder: Path, dim: int) -> Path:
    """config.json, model.safetensors and tokenizer.json."""
    tiny_bert(dim).save_pretrained(folder)
    build_pieces(LIMIT).save(folder / "tokenizer.json")
    return folder


def tiny_encoder(folder: Path, dim: int, **files: Any) -> Path:
    """A folder as sentence-transformers writes it, which takes the mean; `files` replace or add JSON files by name."""
    tiny_bert(dim).save_pretrained(folder)
    pieces = build_pieces(LIMIT)
    tokenizer = Tokenizer.from_str(pieces.text)
    tokenizer.no_truncation()
    special = [("[CLS]", pieces.cls), ("[SEP]", pieces.sep)]
    tokenizer.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", None, special)
    tokenizer.save(str(folder / "tokenizer.json"))
    content: dict[str, Any] = {
        "tokenizer_config": {"tokenizer_class": "BertTokenizer"},
        "modules": [
            {"path": "", "type": "sentence_transformers.models.Transformer"},
            {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        ],
        "sentence_bert_config": {"max_seq_length": 12},
        "1_Pooling/config": {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False},
    }
    (folder / "1_Pooling").mkdir()
    for name, value in (content | files).items():
        (folder / f"{name}.json").write_text(json.dumps(value))
    return folder

"""A transformer that nobody trained: a layer of BertModel, in memory or as a folder of Hugging Face's layout."""

from pathlib import Path

import torch
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


def tiny_transformer(dim: int, *, frozen: bool = False) -> PieceEmbedding:
    return PieceEmbedding(tiny_bert(dim), frozen=frozen)


def tiny_folder(folder: Path, dim: int) -> Path:
    """config.json, model.safetensors and tokenizer.json."""
    tiny_bert(dim).save_pretrained(folder)
    build_pieces(LIMIT).save(folder / "tokenizer.json")
    return folder

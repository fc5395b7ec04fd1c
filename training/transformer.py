"""The transformer of a run, a Hugging Face BertModel, and its tokenizer."""

import json
from pathlib import Path
from typing import Any

from torch import nn

from heedful.models.lora import add_lora
from heedful.text.pieces import Pieces
from heedful.training import minilm
from heedful.training.config import Device, TransformerConfig
from heedful.training.errors import ConfigError

ATTENTION: dict[Device, str] = {"cpu": "eager", "cuda": "sdpa"}
"""The better implementation on each device. On a CPU the backward pass of torch's fused attention takes as long as all
the rest at 16 pieces a sentence; on a GPU it is faster and saves memory."""


def load(
    config: TransformerConfig, device: Device = "cpu", *, freeze_pieces: bool = False
) -> tuple[nn.Module, Pieces]:
    """The pretrained model, without its pooling layer, and its tokenizer applied word by word.

    Raises ConfigError where `name` is no such model, or its size is not `dim`.
    """
    from safetensors import SafetensorError
    from tokenizers import Tokenizer
    from transformers import BertModel

    folder = minilm.folder() if config.name == "minilm" else Path(config.name)
    if not (folder / "tokenizer.json").is_file():
        raise ConfigError(
            f"transformer.name: {config.name!r} is neither minilm nor a folder of a Hugging Face "
            "BertModel with its tokenizer.json"
        )
    try:
        kind = json.loads((folder / "config.json").read_bytes())["model_type"]
        if kind != "bert":  # whose weights transformers would leave out, and warn
            raise ConfigError(f"transformer.name: {folder} holds a model of type {kind}, not bert")
        model = BertModel.from_pretrained(
            folder,
            add_pooling_layer=False,
            attn_implementation=ATTENTION[device],
            hidden_dropout_prob=config.dropout,
            attention_probs_dropout_prob=config.dropout,
        )
        tokenizer = Tokenizer.from_buffer((folder / "tokenizer.json").read_bytes())
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        raise ConfigError(
            f"transformer.name: {folder} cannot be loaded: download its config.json, model.safetensors and "
            f"tokenizer.json again: {error}"
        ) from error
    found = model.config
    if found.hidden_size != config.dim:
        raise ConfigError(
            f"transformer.dim: {config.name} has {found.hidden_size} features, not {config.dim}"
        )
    if config.frozen_layers > found.num_hidden_layers:
        raise ConfigError(
            f"transformer.frozen_layers: {config.name} has {found.num_hidden_layers} layers, not "
            f"{config.frozen_layers}"
        )
    if freeze_pieces:
        model.embeddings.word_embeddings.requires_grad_(False)
    if config.lora_rank:
        _train_adapters(model, config.lora_rank)
    if config.frozen_layers:
        model.embeddings.requires_grad_(False)
        model.encoder.layer[: config.frozen_layers].requires_grad_(False)
    return model, Pieces(tokenizer, found.max_position_embeddings)


def _train_adapters(model: Any, rank: int) -> None:
    """Train LoRA adapters of the layers' matrices, and the layers' biases and norms."""
    model.embeddings.requires_grad_(False)
    layers = model.encoder.layer
    add_lora([one for one in layers.modules() if isinstance(one, nn.Linear)], rank)

"""The transformer of a run, a Hugging Face BertModel, and its tokenizer."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import nn

from heedful.models.lora import add_lora
from heedful.text.pieces import Pieces
from heedful.training import teachers
from heedful.training.config import Device, TransformerConfig
from heedful.training.errors import ConfigError

ATTENTION: dict[Device, str] = {"cpu": "eager", "cuda": "sdpa"}
"""The faster implementation on each device. On a CPU, at 16 pieces a sentence, the backward pass of torch's fused
attention takes as long as all the rest; on a GPU it is faster and saves memory."""


def folder(config: TransformerConfig) -> Path:
    """The folder of the pretrained model. Raises ConfigError, DataMissing."""
    installed = config.name in (teachers.MINILM, teachers.MPNET)
    place = teachers.folder(config.name) if installed else Path(config.name)
    if not (place / "tokenizer.json").is_file():
        raise ConfigError(
            f"transformer.name: {config.name!r} is neither minilm, mpnet nor a folder of a Hugging Face "
            "model with its tokenizer.json"
        )
    return place


def load_model(config: TransformerConfig, device: Device, **keywords: Any) -> Any:
    """A model of the type that its config.json names, with the section's dropout; on the CPU.

    Raises ConfigError where it cannot be loaded, or its size is not `dim`.
    """
    from transformers import AutoModel

    place = folder(config)
    with _damage_reported(place):
        model = AutoModel.from_pretrained(
            place,
            attn_implementation=ATTENTION[device],
            hidden_dropout_prob=config.dropout,
            attention_probs_dropout_prob=config.dropout,
            **keywords,
        )
    if model.config.hidden_size != config.dim:
        raise ConfigError(
            f"transformer.dim: {config.name} has {model.config.hidden_size} features, not {config.dim}"
        )
    return model


@contextmanager
def _damage_reported(folder: Path) -> Iterator[None]:
    """Raise ConfigError that names the folder where one of its files is damaged."""
    from safetensors import SafetensorError

    try:
        yield
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        raise ConfigError(
            f"transformer.name: {folder} cannot be loaded: download its config.json, model.safetensors and "
            f"tokenizer.json again: {error}"
        ) from error


def load(
    config: TransformerConfig, device: Device = "cpu", *, freeze_pieces: bool = False
) -> tuple[nn.Module, Pieces]:
    """The pretrained model, without its pooling layer, and its tokenizer applied word by word.

    Raises ConfigError where `name` is no such model, or its size is not `dim`.
    """
    from tokenizers import Tokenizer

    place = folder(config)
    with _damage_reported(place):
        kind = json.loads((place / "config.json").read_bytes())["model_type"]
        if kind != "bert":  # transformers would leave other weights out, and warn
            raise ConfigError(f"transformer.name: {place} holds a model of type {kind}, not bert")
        tokenizer = Tokenizer.from_buffer((place / "tokenizer.json").read_bytes())
    model = load_model(config, device, add_pooling_layer=False)
    settings = model.config
    if config.frozen_layers > settings.num_hidden_layers:
        raise ConfigError(
            f"transformer.frozen_layers: {config.name} has {settings.num_hidden_layers} layers, not "
            f"{config.frozen_layers}"
        )
    if freeze_pieces:
        model.embeddings.word_embeddings.requires_grad_(False)
    if config.lora_rank:
        _train_adapters(model, config.lora_rank)
    if config.frozen_layers:
        model.embeddings.requires_grad_(False)
        model.encoder.layer[: config.frozen_layers].requires_grad_(False)
    return model, Pieces(tokenizer, settings.max_position_embeddings)


def layer_groups(model: Any, config: TransformerConfig) -> list[dict[str, Any]]:
    """The trained parameters of a transformer with their learning rates, lower layers first.

    The pooling layer, which nothing reads, is left out.
    """
    weights = [
        (name, p)
        for name, p in model.named_parameters()
        if p.requires_grad and not name.startswith("pooler.")
    ]
    if config.layer_decay == 1:
        return [{"params": [p for _, p in weights], "lr": config.rate}]
    layers = len(model.encoder.layer)
    groups: list[dict[str, Any]] = [
        {"params": [], "lr": config.rate * config.layer_decay ** (layers - i)}
        for i in range(layers + 1)
    ]
    for name, weight in weights:
        in_layer = name.startswith("encoder.layer.")
        groups[1 + int(name.split(".")[2]) if in_layer else 0]["params"].append(weight)
    return groups


def _train_adapters(model: Any, rank: int) -> None:
    """Train LoRA adapters of the layers' matrices, and the layers' biases and norms."""
    model.embeddings.requires_grad_(False)
    layers = model.encoder.layer
    add_lora([module for module in layers.modules() if isinstance(module, nn.Linear)], rank)

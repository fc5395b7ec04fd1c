"""A run's folder -> the model with its best weights."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from heedful.models.lora import merge
from heedful.text.pieces import Lexicon, Pieces
from heedful.text.vocab import Vocab
from heedful.training import checkpoint, transformer
from heedful.training.config import CROSS_ENCODER, RunConfig, validate
from heedful.training.errors import RunDamaged, RunMissing
from heedful.training.model import TrainingModel, make_model


@dataclass(frozen=True, slots=True)
class Run:
    """A finished run: its record, its vocabulary, and its best model in evaluation mode."""

    config: RunConfig
    record: dict[str, Any]
    lexicon: Lexicon
    model: TrainingModel


def restore(folder: Path) -> Run:
    """Load a finished run. Raises RunMissing (unfinished, or the run of a cross-encoder), RunDamaged."""
    record = encoder_record(folder)
    config = validate(record["config"], folder / checkpoint.RECORD)
    lexicon, words = read_words(folder, config)
    model = make_model(config, record["kind"], len(record["labels"]), words)
    try:
        model.load_trained(checkpoint.best(folder))
    except RuntimeError as error:
        raise checkpoint.weights_mismatch(folder, error) from error
    merge(model)
    return Run(config, record, lexicon, model.eval())


def read_record(folder: Path) -> dict[str, Any]:
    """The record of a finished run. Raises RunMissing, RunDamaged."""
    require_finished(folder)
    return checkpoint.record(folder)


def encoder_record(folder: Path) -> dict[str, Any]:
    """The record of an encoder's run. Raises RunMissing, for the run of a cross-encoder too, and RunDamaged."""
    record = read_record(folder)
    if record["config"]["encoder"]["name"] == CROSS_ENCODER:
        raise RunMissing(f"{folder} is the run of a cross-encoder: name the run of an encoder")
    return record


def require_finished(folder: Path) -> None:
    """Raise RunMissing where the run has not ended."""
    for name in (checkpoint.RECORD, checkpoint.BEST):
        _require_file(folder, name)


def _require_file(folder: Path, name: str) -> None:
    if not (folder / name).is_file():
        raise RunMissing(f"{folder} holds no {name}: train it first, or continue with --resume")


def read_words(folder: Path, config: RunConfig) -> tuple[Lexicon, torch.Tensor | nn.Module]:
    """A run's vocabulary, and its word table or transformer, which does not hold the run's weights yet.

    Raises RunMissing where the run has none, and RunDamaged.
    """
    if config.transformer:
        _require_file(folder, checkpoint.TOKENIZER)
        freeze_pieces = "pieces" in config.freeze
        module, _ = transformer.load(config.transformer, freeze_pieces=freeze_pieces)
        return Pieces.read((folder / checkpoint.TOKENIZER).read_bytes()), module
    _require_file(folder, checkpoint.VOCAB)
    try:
        vocab = Vocab.read((folder / checkpoint.VOCAB).read_bytes(), config.words.subword_rows)
    except ValueError as error:
        raise RunDamaged(f"{folder / checkpoint.VOCAB}: {error}; train again") from error
    return vocab, torch.zeros(len(vocab), config.words.dim)

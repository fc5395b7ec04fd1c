"""The initial weights of a run from a finished run or a bundle (`init_from`)."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from heedful.models.composed_words import ComposedWords
from heedful.text.vocab import Vocab
from heedful.training import checkpoint
from heedful.training.config import RunConfig
from heedful.training.errors import ConfigError, RunMissing
from heedful.training.model import TrainingModel
from heedful.training.restore import encoder_record
from heedful.training.restore_bundle import is_bundle, restore_bundle
from heedful.training.tasks.base import Task

FEATURES = "sentence.embedding.features.weight"
TABLES = ("sentence.embedding.weight", "sentence.embedding.table.weight")
"""Names of the word table: with a closed vocabulary, and with composed words."""
TRANSFERRED = ("sentence.encoder.", "sentence.embedding.")
"""Weights that a run of another task takes over: neither a head nor an embedding's projection to its teacher's axes."""


def load_initial_weights(
    config: RunConfig, model: TrainingModel, task: Task, lexicon: Path
) -> list[dict[str, Any]]:
    """Load the best weights of the run or bundle `config.init_from`; returns the data in its record.

    A word that it does not list keeps its initial vector. From a run with other classes the encoder is loaded, not the
    head. Weights that this encoder adds keep their initial values. `lexicon` is the new run's file of words or pieces.
    The parts that `freeze` names are not trained; with the encoder, the loaded head of an encoder that adds weights is
    frozen too. Raises ConfigError unless the models and the pieces of a transformer are the same; RunDamaged.
    """
    run = config.init_from
    assert run is not None, "the configuration has init_from"
    try:
        source = restore_bundle(run) if is_bundle(run) else None
        record = source.record if source else encoder_record(run)
    except RunMissing as error:
        raise ConfigError(f"init_from: {error}") from error
    old, has_words = run / lexicon.name, lexicon.name == checkpoint.VOCAB
    if not old.exists() or not (has_words or old.read_bytes() == lexicon.read_bytes()):
        raise ConfigError(f"init_from: {run} reads other pieces: take the same [transformer]")
    weights = source.model.trained_state_dict() if source else checkpoint.best(run)
    if (record["kind"], tuple(record["labels"])) != (task.kind, task.labels):
        initial = model.trained_state_dict()
        weights = {
            **{name: value for name, value in weights.items() if name.startswith(TRANSFERRED)},
            **{name: value for name, value in initial.items() if not name.startswith(TRANSFERRED)},
        }
    added = record["config"]["encoder"]["name"] != config.encoder.name
    for name, weight in model.named_parameters():
        if name in weights and _is_frozen(name, config, added=added):
            weight.requires_grad_(False)
    if added:
        weights = model.trained_state_dict() | weights
    try:
        if has_words:
            words = [Vocab.read(path.read_bytes()) for path in (old, lexicon)]
            _move_words(weights, model, *words)
        model.load_trained(weights)
    except (KeyError, RuntimeError) as error:
        raise ConfigError(f"init_from: {run} holds another model: {error}") from error
    data: list[dict[str, Any]] = record["data"]
    return data


def _is_frozen(name: str, config: RunConfig, *, added: bool) -> bool:
    if name.startswith("sentence.embedding."):
        return "transformer" in config.freeze
    return "encoder" in config.freeze and (added or name.startswith("sentence."))


def _move_words(weights: dict[str, Tensor], model: TrainingModel, old: Vocab, new: Vocab) -> None:
    """Put the old word vectors at the ids of the new vocabulary, in place."""
    composed = isinstance(model.sentence.embedding, ComposedWords)
    name = TABLES[composed]
    if not composed and TABLES[True] in weights:  # a closed vocabulary composes no words
        weights[name] = weights.pop(TABLES[True])
        del weights[FEATURES]
    old_ids = {word: i for i, word in enumerate(old.words)}
    shared = [(i, old_ids[word]) for i, word in enumerate(new.words) if word in old_ids]
    target, source = torch.tensor(shared).T
    table = model.state_dict()[name].clone()
    table[target] = weights[name][source]
    weights[name] = table

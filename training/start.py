"""A run that begins with the weights of a finished one, or with those that a bundle stores (`init_from`)."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from heedful.models.composed_words import ComposedWords
from heedful.text.vocab import Vocab
from heedful.training import checkpoint
from heedful.training import restore_bundle as restored
from heedful.training.config import RunConfig
from heedful.training.errors import ConfigError, RunMissing
from heedful.training.model import TrainingModel
from heedful.training.restore import encoder_record
from heedful.training.tasks.base import Task

FEATURES = "sentence.embedding.features.weight"
TABLES = ("sentence.embedding.weight", "sentence.embedding.table.weight")
"""The word table, of a closed list and where words are composed."""
LENT = ("sentence.encoder.", "sentence.embedding.")
"""What another task can use. An embedding's projection serves its own teacher, as a head serves its classes."""


def begin_with(
    config: RunConfig, model: TrainingModel, task: Task, lexicon: Path
) -> list[dict[str, Any]]:
    """Load the best weights of the run or bundle `config.init_from`; returns what its record says of its data.

    A word that it did not list keeps its initial vector. A run with other classes lends its encoder, not its head.
    Weights that another encoder adds keep their initial values. `lexicon` is the new run's file of words or pieces.
    What `freeze` names is not trained; with the encoder, nor is the loaded head of an encoder that adds weights.
    Raises ConfigError unless the models are the same, the pieces of a transformer included; RunDamaged.
    """
    run = config.init_from
    assert run is not None, "only a run with init_from begins with another"
    try:
        source = restored.restore_bundle(run) if restored.is_bundle(run) else None
        record = source.record if source else encoder_record(run)
    except RunMissing as error:
        raise ConfigError(f"init_from: {error}") from error
    listed, words = run / lexicon.name, lexicon.name == checkpoint.VOCAB
    if not listed.exists() or not (words or listed.read_bytes() == lexicon.read_bytes()):
        raise ConfigError(f"init_from: {run} reads other pieces: take the same [transformer]")
    weights = source.model.trained_state_dict() if source else checkpoint.best(run)
    if (record["kind"], tuple(record["labels"])) != (task.kind, task.labels):
        lent = {name: value for name, value in weights.items() if name.startswith(LENT)}
        own = {
            name: one
            for name, one in model.trained_state_dict().items()
            if not name.startswith(LENT)
        }
        weights = lent | own
    added = record["config"]["encoder"]["name"] != config.encoder.name
    for name, weight in model.named_parameters():
        if name in weights and _is_frozen(name, config, added=added):
            weight.requires_grad_(False)
    if added:
        weights = model.trained_state_dict() | weights
    try:
        if words:
            _move_words(weights, model, Vocab.load(listed), Vocab.load(lexicon))
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
    """Put the old word vectors at the new words' ids, in place."""
    composed = isinstance(model.sentence.embedding, ComposedWords)
    name = TABLES[composed]
    if not composed and TABLES[True] in weights:  # what composes words is not taken over
        weights[name] = weights.pop(TABLES[True])
        del weights[FEATURES]
    places = {word: i for i, word in enumerate(old.words)}
    shared = [(i, places[word]) for i, word in enumerate(new.words) if word in places]
    to, source = torch.tensor(shared).T
    table = model.state_dict()[name].clone()
    table[to] = weights[name][source]
    weights[name] = table

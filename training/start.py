"""A run that begins with the weights of a finished one (`start`)."""

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
from heedful.training.tasks.base import Task

LENT = ("sentence.encoder.", "sentence.embedding.")
"""What another task can use. An embedding's projection serves its own teacher, as a head serves its classes."""


def begin_with(
    config: RunConfig, model: TrainingModel, task: Task, lexicon: Path
) -> list[dict[str, Any]]:
    """Load the best weights of the run `config.start`; returns what its record says of its data.

    A word that it did not list keeps its initial vector. A run with other classes lends its encoder, not its head.
    Weights that another encoder adds keep their initial values. `lexicon` is the new run's file of words or pieces.
    With `encoder.frozen` the loaded encoder is not trained, nor the loaded head of an encoder that adds weights.
    Raises ConfigError unless the models are the same, the pieces of a transformer included; RunDamaged.
    """
    run = config.start
    assert run is not None, "only a run with a start begins with another"
    try:
        record = encoder_record(run)
    except RunMissing as error:
        raise ConfigError(f"start: {error}") from error
    listed, words = run / lexicon.name, lexicon.name == checkpoint.VOCAB
    if not listed.exists() or not (words or listed.read_bytes() == lexicon.read_bytes()):
        raise ConfigError(f"start: {run} reads other pieces: take the same [transformer]")
    weights = checkpoint.best(run)
    if (record["kind"], tuple(record["labels"])) != (task.kind, task.labels):
        lent = {name: value for name, value in weights.items() if name.startswith(LENT)}
        own = {name: one for name, one in model.learned().items() if not name.startswith(LENT)}
        weights = lent | own
    added = record["config"]["encoder"]["name"] != config.encoder.name
    if config.encoder.frozen:
        kept = [name for name in weights if added or name.startswith("sentence.")]
        if config.transformer and not config.transformer.frozen:
            kept = [name for name in kept if not name.startswith("sentence.embedding.")]
        for name, weight in model.named_parameters():
            if name in kept:
                weight.requires_grad_(False)
    if added:
        weights = model.learned() | weights
    try:
        if words:
            _move_words(weights, model, Vocab.load(listed), Vocab.load(lexicon))
        model.load_learned(weights)
    except (KeyError, RuntimeError) as error:
        raise ConfigError(f"start: {run} holds another model: {error}") from error
    data: list[dict[str, Any]] = record["data"]
    return data


def _move_words(weights: dict[str, Tensor], model: TrainingModel, old: Vocab, new: Vocab) -> None:
    """Put the old word vectors at the new words' ids, in place."""
    composed = isinstance(model.sentence.embedding, ComposedWords)
    name = "sentence.embedding.table.weight" if composed else "sentence.embedding.weight"
    places = {word: i for i, word in enumerate(old.words)}
    shared = [(i, places[word]) for i, word in enumerate(new.words) if word in places]
    to, source = torch.tensor(shared).T
    table = model.state_dict()[name].clone()
    table[to] = weights[name][source]
    weights[name] = table

"""What a task is: where its examples come from, its labels and its kind of head."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from heedful.text.kinds import Kind

UNLABELLED = -1.0
"""The label of an example that has none: it can be learnt from a teacher alone."""


@dataclass(frozen=True, slots=True)
class Example:
    """One labelled text (`texts` holds one) or pair (two: premise, hypothesis).

    `label` indexes `Task.labels`, or is `UNLABELLED`; for a pair of kind relatedness or embedding it is the
    gold score.
    """

    texts: tuple[str, ...]
    label: float


Reader = Callable[[Path], list[Example]]
"""Reads every example under the data folder. Raises DataMissing, DataError."""


@dataclass(frozen=True, slots=True)
class Source:
    """One file or set of files that examples are read from, with what a model card has to say of it."""

    name: str
    licence: str
    note: str
    read: Reader


@dataclass(frozen=True, slots=True)
class Task:
    """A dataset: `train` may hold several sources; `dev` chooses, `test` is read once, by `evaluate`."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    train: tuple[Source, ...]
    dev: Source
    test: Source
    background: tuple[Source, ...] = ()
    """Unlabelled text that only widens the vocabulary."""

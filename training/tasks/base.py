"""Tasks: their examples, labels and kind."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from heedful.text.kinds import Kind
from heedful.training.errors import DataError

UNLABELLED = -1.0
"""The label of an example that has none; a teacher supplies its target."""


@dataclass(frozen=True, slots=True)
class Example:
    """One labelled text (`texts` holds one) or pair (two: premise, hypothesis).

    `label` indexes `Task.labels` or is `UNLABELLED`; for the kinds relatedness and embedding it is the gold
    score. A `trusted` label is right by construction, so that no teacher corrects it.
    """

    texts: tuple[str, ...]
    label: float
    trusted: bool = False


Reader = Callable[[Path], list[Example]]
"""Reads every example under the data folder. Raises DataMissing, DataError."""


@dataclass(frozen=True, slots=True)
class Source:
    """A set of examples, and its name, licence and note for the model card."""

    name: str
    licence: str
    note: str
    read: Reader


@dataclass(frozen=True, slots=True)
class Task:
    """`train` may hold several sources; `dev` selects the epoch, `test` is read only to evaluate."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    train: tuple[Source, ...]
    dev: Source
    test: Source
    background: tuple[Source, ...] = ()
    """Texts that only extend the vocabulary."""
    variant_of: str = ""
    """The task of which this is a variant with other data to train on; the model's card names that task."""

    def require(self, split: str, examples: Sequence[Example]) -> None:
        """Raise DataError where a split has no example."""
        if not examples:
            raise DataError(
                f"task {self.name}: its {split} split has no example: add rows to its files"
            )

    def texts(self, data: Path) -> list[str]:
        """The distinct texts of the examples to train on. Raises DataMissing, DataError."""
        examples = (example for source in self.train for example in source.read(data))
        return list(dict.fromkeys(text for example in examples for text in example.texts))

    @property
    def answers(self) -> str:
        """The task that a model's card names."""
        return self.variant_of or self.name

    def variant(self, name: str, *train: Source) -> Self:
        """The same classes, dev and test, with other data to train on."""
        return replace(self, name=name, train=train, variant_of=self.name)

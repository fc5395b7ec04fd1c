"""What a task is: where its examples come from, its labels and its kind of head."""

import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from heedful.training.errors import DataError, DataMissing

Kind = Literal["nli", "classification", "relatedness", "embedding"]
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


def find(data: Path, candidates: tuple[str, ...], *, get_from: str) -> Path:
    """The first of `candidates` that exists under `data`, gzipped or not. Raises DataMissing."""
    for name in candidates:
        for path in (data / name, data / f"{name}.gz"):
            if path.is_file():
                return path
    raise DataMissing(
        f"no {' or '.join(candidates)} (or the same with .gz) in the data folder; it comes from {get_from}"
    )


def lines(path: Path, encoding: str = "utf-8") -> Iterator[str]:
    """Lines of a text file, gzipped or not, without their line ends. Raises DataError where it is not `encoding`."""
    with (
        gzip.open(path, "rt", encoding=encoding)
        if path.suffix == ".gz"
        else path.open(encoding=encoding) as file
    ):
        try:
            for line in file:
                yield line.rstrip("\n")
        except UnicodeDecodeError as error:
            raise DataError(f"{path.name}: not {encoding}: {error.reason}") from error


def records(path: Path) -> Iterator[dict[str, Any]]:
    """Objects of a JSON-lines file. Raises DataError naming the line that is none."""
    for number, line in enumerate(lines(path), 1):
        try:
            yield json.loads(line)
        except json.JSONDecodeError as error:
            raise DataError(f"{path.name}:{number}: not a JSON object") from error

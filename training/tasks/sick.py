"""SICK (Marelli et al. 2014): the relatedness of two sentences from 1 to 5, and their entailment.

Reads the official tables (`SICK_train.txt`, `SICK_trial.txt`, `SICK_test_annotated.txt`; tabs, a header
line) or JSON lines of `a`, `b`, `score`, `label`.
"""

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from heedful.text.kinds import NLI_LABELS
from heedful.training.data_folder import find, lines, read_each, records, text_of
from heedful.training.tasks.base import Example, Source

LICENCE = "CC BY-NC-SA 3.0"
OFFICIAL = {"train": "SICK_train.txt", "dev": "SICK_trial.txt", "test": "SICK_test_annotated.txt"}
OVERLAP = "59 of its pairs, in lower case, stand in the test split too"


Pair = tuple[tuple[str, str], float, int]
"""Two texts, their score, and the index of their label in NLI_LABELS."""


def rows(data: Path, split: str) -> Iterator[Pair]:
    """Every pair. Raises DataMissing, DataError."""
    path = find(data, (OFFICIAL[split], f"sick/{split}.jsonl"), dataset="sick")
    if OFFICIAL[split] in path.name:
        table = csv.DictReader(lines(path), delimiter="\t", quoting=csv.QUOTE_NONE)
        names = ("sentence_A", "sentence_B", "relatedness_score", "entailment_judgment")
        return read_each(path, table, lambda row: _pair(row, names), first=2)
    return read_each(path, records(path), lambda row: _pair(row, ("a", "b", "score", "label")))


def _pair(row: dict[str, Any], names: tuple[str, str, str, str]) -> Pair:
    """The pair in the fields of these names. Raises KeyError, TypeError, ValueError."""
    a, b, score, label = names
    name = text_of(row, label).lower()
    if name not in NLI_LABELS:
        raise ValueError(f"label {name!r} is none of {', '.join(NLI_LABELS)}")
    return (text_of(row, a), text_of(row, b)), float(row[score]), NLI_LABELS.index(name)


def sources(read: Callable[[Pair], Example]) -> dict[str, Source]:
    """By split; `read` makes an example of a pair."""
    notes = {"train": f"whole; {OVERLAP}", "dev": "the trial split, whole", "test": "whole"}

    def source(split: str, note: str) -> Source:
        return Source("sick", LICENCE, note, lambda data: list(map(read, rows(data, split))))

    return {split: source(split, note) for split, note in notes.items()}


RELATEDNESS = sources(lambda pair: Example(pair[0], pair[1]))

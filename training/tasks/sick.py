"""SICK (Marelli et al. 2014): the relatedness of two sentences from 1 to 5, or their entailment.

Reads the official tables (`SICK_train.txt`, `SICK_trial.txt`, `SICK_test_annotated.txt`; tabs, a header
line) or JSON lines of `a`, `b`, `score`, `label`.
"""

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from heedful.text.kinds import NLI_LABELS
from heedful.training.data_folder import find, lines, read_each, records, text_of
from heedful.training.tasks.base import Example, Source, Task
from heedful.training.tasks.nli import SNLI_TRAIN, label_number

LICENCE = "CC BY-NC-SA 3.0"
OFFICIAL = {"train": "SICK_train.txt", "dev": "SICK_trial.txt", "test": "SICK_test_annotated.txt"}
OVERLAP = "59 of its pairs, in lower case, stand in the test split too"


Pair = tuple[tuple[str, str], float, str]


def rows(data: Path, split: str) -> Iterator[Pair]:
    """(a, b), score, label of every pair. Raises DataMissing, DataError."""
    path = find(data, (OFFICIAL[split], f"sick/{split}.jsonl"), dataset="sick")
    if OFFICIAL[split] in path.name:
        table = csv.DictReader(lines(path), delimiter="\t", quoting=csv.QUOTE_NONE)
        names = ("sentence_A", "sentence_B", "relatedness_score", "entailment_judgment")
        return read_each(path, table, lambda row: _pair(row, names), first=2)
    return read_each(path, records(path), lambda row: _pair(row, ("a", "b", "score", "label")))


def _pair(row: dict[str, Any], names: tuple[str, str, str, str]) -> Pair:
    """The pair in the fields of these names. Raises KeyError, TypeError, ValueError."""
    a, b, score, label = names
    number = label_number(text_of(row, label).lower())
    return (text_of(row, a), text_of(row, b)), float(row[score]), NLI_LABELS[number]


def _relatedness(split: str) -> Callable[[Path], list[Example]]:
    return lambda data: [Example(texts, score) for texts, score, _ in rows(data, split)]


def _entailment(split: str) -> Callable[[Path], list[Example]]:
    return lambda data: [
        Example(texts, NLI_LABELS.index(label)) for texts, _, label in rows(data, split)
    ]


def _sources(read: Callable[[str], Callable[[Path], list[Example]]]) -> dict[str, Source]:
    notes = {"train": f"whole; {OVERLAP}", "dev": "the trial split, whole", "test": "whole"}
    return {split: Source("sick", LICENCE, note, read(split)) for split, note in notes.items()}


RELATEDNESS, ENTAILMENT = _sources(_relatedness), _sources(_entailment)

TASKS = (
    Task(
        name="sick-relatedness",
        kind="relatedness",
        labels=(),
        train=(RELATEDNESS["train"],),
        dev=RELATEDNESS["dev"],
        test=RELATEDNESS["test"],
        background=(SNLI_TRAIN,),
    ),
    Task(
        name="sick-entailment",
        kind="nli",
        labels=NLI_LABELS,
        train=(ENTAILMENT["train"],),
        dev=ENTAILMENT["dev"],
        test=ENTAILMENT["test"],
        background=(SNLI_TRAIN,),
    ),
)

"""SICK (Marelli et al. 2014): the relatedness of two sentences from 1 to 5, or their entailment.

Reads the official tables (`SICK_train.txt`, `SICK_trial.txt`, `SICK_test_annotated.txt`; tabs, a header
line) or JSON lines of `a`, `b`, `score`, `label`.
"""

import csv
from collections.abc import Callable, Iterator
from pathlib import Path

from heedful.text.kinds import NLI_LABELS
from heedful.training.data_folder import find, lines, records
from heedful.training.errors import DataError
from heedful.training.tasks.base import Example, Source, Task
from heedful.training.tasks.nli import SNLI_TRAIN

LICENCE = "CC BY-NC-SA 3.0"
OFFICIAL = {"train": "SICK_train.txt", "dev": "SICK_trial.txt", "test": "SICK_test_annotated.txt"}
OVERLAP = "59 of its pairs, in lower case, stand in the test split too"


def rows(data: Path, split: str) -> Iterator[tuple[tuple[str, str], float, str]]:
    """(a, b), score, label of every pair. Raises DataMissing, DataError."""
    path = find(data, (OFFICIAL[split], f"sick/{split}.jsonl"), dataset="sick")
    try:
        if OFFICIAL[split] in path.name:
            for row in csv.DictReader(lines(path), delimiter="\t", quoting=csv.QUOTE_NONE):
                texts = row["sentence_A"], row["sentence_B"]
                yield texts, float(row["relatedness_score"]), row["entailment_judgment"].lower()
        else:
            for record in records(path):
                yield (record["a"], record["b"]), float(record["score"]), record["label"]
    except (KeyError, ValueError) as error:
        raise DataError(f"{path.name} is not laid out as SICK is: {error}") from error


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

"""Test rows that training has seen."""

import json
from pathlib import Path

import pytest

from heedful.text.kinds import NLI_LABELS
from heedful.training import tasks
from heedful.training.tasks.base import Example, Source, Task
from tests.datasets import DATA, needs_data
from tests.process import ROOT
from tools import overlaps


def source(*texts: str) -> Source:
    rows = [Example(tuple(text.split("/")), 0) for text in texts]
    return Source("toys", "CC0-1.0", "whole", lambda _: rows)


def test_what_stands_in_train_or_dev_is_counted_without_case_and_white_space() -> None:
    task = Task(
        name="toys",
        kind="nli",
        labels=NLI_LABELS,
        train=(source("A dog./A cat.", "a  Dog./a cat."), source("Two kids./A kid.")),
        dev=source("He left./She left."),
        test=source("a dog./a cat.", "a cat./a dog.", "he left./she left.", "two kids/a kid"),
    )
    counts = {"rows": 4, "test_seen": 2, "letters_seen": 3, "train_in_test": 3}
    assert overlaps.overlap(task, Path()) == counts


def test_an_embedding_is_held_against_the_sentences_of_its_dev_pairs() -> None:
    task = Task(
        name="toys",
        kind="embedding",
        labels=(),
        train=(source("A dog.", "a kid"),),
        dev=source("a dog./a cat.", "A Kid/two kids"),
        test=source("never/read"),
    )
    counts = {"rows": 4, "test_seen": 2, "letters_seen": 2, "train_in_test": 2}
    assert overlaps.overlap(task, Path()) == counts


@needs_data
@pytest.mark.parametrize("name", ["r8", "sst2", "trec"])
def test_the_record_counts_the_data(name: str) -> None:
    recorded = json.loads((ROOT / overlaps.RECORD).read_text(encoding="utf-8"))
    assert set(recorded["tasks"]) == {*overlaps.COUNTED, *overlaps.FOLDED}
    assert overlaps.overlap(tasks.get(name), DATA) == recorded["tasks"][name]
    assert overlaps.sst_in_subj(DATA) == recorded["sst_in_subj"]

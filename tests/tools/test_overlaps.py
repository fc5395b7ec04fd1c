"""Test rows that training has seen."""

from pathlib import Path

from heedful.text.kinds import NLI_LABELS
from heedful.training.tasks.base import Example, Source, Task
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

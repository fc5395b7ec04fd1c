"""STS benchmark (Cer et al. 2017): the similarity of two sentences from 0 to 5.

Reads the official `stsbenchmark/sts-{train,dev,test}.csv` (tabs; the score and the sentences are
columns 5 to 7) or JSON lines of `a`, `b`, `score`.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from heedful.training.data_folder import find, lines, read_each, records, text_of
from heedful.training.tasks.base import Example, Source

LICENCE = "CC BY-SA 4.0, some sources their own"


def _rows(data: Path, split: str) -> Iterator[tuple[tuple[str, str], float]]:
    path = find(data, (f"stsbenchmark/sts-{split}.csv", f"stsb/{split}.jsonl"), dataset="stsb")
    if ".csv" in path.suffixes:
        return read_each(path, lines(path), _official)
    return read_each(
        path,
        records(path),
        lambda row: ((text_of(row, "a"), text_of(row, "b")), float(row["score"])),
    )


def _official(line: str) -> tuple[tuple[str, str], float]:
    cells = line.split("\t")
    if len(cells) < 7:
        raise ValueError(f"{len(cells)} cells, not 7 or more")
    score, a, b = cells[4:7]
    return (a, b), float(score)


def source(split: str, read: Callable[[float], float] = lambda score: score) -> Source:
    """A split; `read` makes a label of a score."""

    def examples(data: Path) -> list[Example]:
        return [Example(texts, read(score)) for texts, score in _rows(data, split)]

    return Source("stsb", LICENCE, "whole", examples)


DEV, TEST = source("dev"), source("test")

"""STS benchmark (Cer et al. 2017): the similarity of two sentences from 0 to 5.

Reads the official `stsbenchmark/sts-{train,dev,test}.csv` (tabs; the score and the sentences are
columns 5 to 7) or JSON lines of `a`, `b`, `score`.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from heedful.training.data_folder import find, lines, read_each, records, text_of
from heedful.training.tasks.base import Example, Source, Task

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


def _similarity(split: str) -> Callable[[Path], list[Example]]:
    return lambda data: [Example(texts, score) for texts, score in _rows(data, split)]


def _relatedness(split: str) -> Callable[[Path], list[Example]]:
    """Maps 0 to 5 to SICK's 1 to 5, which changes no correlation."""
    return lambda data: [Example(texts, 1 + 0.8 * score) for texts, score in _rows(data, split)]


def _source(split: str, read: Callable[[str], Callable[[Path], list[Example]]]) -> Source:
    return Source("stsb", LICENCE, "whole", read(split))


DEV, TEST = _source("dev", _similarity), _source("test", _similarity)

TASKS = (
    Task(
        name="stsb",
        kind="relatedness",
        labels=(),
        train=(_source("train", _relatedness),),
        dev=_source("dev", _relatedness),
        test=_source("test", _relatedness),
    ),
)

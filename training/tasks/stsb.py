"""STS benchmark (Cer et al. 2017): the similarity of two sentences from 0 to 5.

Reads the official `stsbenchmark/sts-{train,dev,test}.csv` (tabs; the score and the sentences are
columns 5 to 7) or JSON lines of `a`, `b`, `score`.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from heedful.training.data_folder import find, lines, records
from heedful.training.errors import DataError
from heedful.training.tasks.base import Example, Source, Task

LICENCE = "CC BY-SA 4.0, some sources their own"


def _rows(data: Path, split: str) -> Iterator[tuple[tuple[str, str], float]]:
    path = find(data, (f"stsbenchmark/sts-{split}.csv", f"stsb/{split}.jsonl"), dataset="stsb")
    try:
        if ".csv" in path.suffixes:
            for line in lines(path):
                _, _, _, _, score, a, b, *_ = line.split("\t")
                yield (a, b), float(score)
        else:
            for record in records(path):
                yield (record["a"], record["b"]), float(record["score"])
    except (KeyError, ValueError) as error:
        raise DataError(f"{path.name} is not laid out as STS-B is: {error}") from error


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

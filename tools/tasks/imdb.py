"""IMDB reviews (Maas et al. 2011), negative or positive.

Reads the official `aclImdb/{train,test}/{neg,pos}/*.txt` or JSON lines; `<br />` becomes a blank.
"""

from collections.abc import Iterator
from pathlib import Path

from heedful.training.data_folder import find, lines
from heedful.training.tasks.base import Example, Reader, Source, Task
from tools.tasks.labelled import UNSTATED, examples, held_out, json_lines

LABELS = ("negative", "positive")
NAMES = {"neg": "negative", "pos": "positive"}
DEV_SHARE = 0.04
"""1,000 reviews of 25,000, as in the LAMA paper."""


def _rows(folder: Path) -> Iterator[tuple[str, str]]:
    for name in NAMES:
        for file in sorted((folder / name).glob("*.txt")):
            yield name, "\n".join(lines(file))


def _read(split: str) -> Reader:
    def read(data: Path) -> list[Example]:
        folder = data / "aclImdb" / split
        candidates = (f"imdb/{split}.jsonl", f"aclImdb/{split}")
        path = folder if folder.is_dir() else find(data, candidates, dataset="imdb")
        rows = _rows(path) if path.is_dir() else json_lines(path)
        plain = ((label, text.replace("<br />", " ")) for label, text in rows)
        return examples(path, plain, LABELS, NAMES)

    return read


TRAIN, DEV = held_out(_read("train"), DEV_SHARE)
TASKS = (
    Task(
        name="imdb",
        kind="classification",
        labels=LABELS,
        train=(Source("imdb", UNSTATED, "whole, but for the 1,000 that are dev", TRAIN),),
        dev=Source("imdb", UNSTATED, "1,000 of the official train split", DEV),
        test=Source(
            "imdb", UNSTATED, "whole; 123 of its 25,000 reviews stand in train too", _read("test")
        ),
    ),
)

"""Texts with which embeddings are scored, so that no embedding may learn from them."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from heedful.training.data_folder import records
from heedful.training.errors import DataMissing
from heedful.training.tasks import sick, stsb

PAIRS = ("heading_first_sentence_html", "boolq_passages")
"""Of `text/pairs`: headings of technical documentation with their sections, and questions with their passages."""
_END = re.compile(r"(?<=[.!?])\s+")
_NO_LETTER_OR_DIGIT = re.compile(r"[\W_]+")


def key(text: str) -> str:
    """A key that is equal for texts with the same letters and digits in the same order, whatever their case."""
    return _NO_LETTER_OR_DIGIT.sub("", text).lower()


@cache
def keys(data: Path) -> frozenset[str]:
    """The keys of all judged texts that are in the data folder, and of each sentence of the held-out pairs.

    Raises DataMissing where STS-B's dev split, which chooses the epoch, is not there.
    """
    return frozenset(key(text) for text in _texts(data))


def _texts(data: Path) -> Iterator[str]:
    for source in (stsb.DEV, stsb.TEST, *sick.RELATEDNESS.values()):
        try:
            yield from (text for example in source.read(data) for text in example.texts)
        except DataMissing:
            if source is stsb.DEV:
                raise
    for file in sorted((data / "mteb_dev").glob("*/*.jsonl.gz")):
        yield from (text for row in records(file) for text in _strings(row))
    for name in PAIRS:
        file = data / "text" / "pairs" / f"{name}.jsonl.gz"
        for row in records(file) if file.is_file() else ():
            for side in (row["a"], row["b"]):
                yield side
                yield from _END.split(side)


def _strings(row: dict[str, object]) -> Iterator[str]:
    for value in row.values():
        for cell in value if isinstance(value, list) else (value,):
            if (
                isinstance(cell, str) and " " in cell
            ):  # labels and numbers of documents are no texts
                yield cell

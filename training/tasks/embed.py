"""Sentences for general embeddings, without their labels, evaluated on pairs of STS-B.

They include no training pair of STS-B or SICK and no sentence of STS-B's dev or test split.
"""

import re
from collections.abc import Callable, Iterable
from pathlib import Path

from heedful.training.data_folder import find, records
from heedful.training.errors import DataMissing
from heedful.training.tasks import nli, sst, stsb
from heedful.training.tasks.base import UNLABELLED, Example, Source, Task

MAX_WORDS = 40
"""Longer sentences, in words between white space, are left out."""
UNSTATED = "no licence stated with the data"
_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'(])")
_BREAK = re.compile(r"\s*<br\s*/?>\s*")


def sentences(text: str) -> list[str]:
    """The sentences of a text that are at most MAX_WORDS words long.

    A line break, or a full stop before white space and a capital, ends one.
    """
    found = (one.strip() for line in _BREAK.split(text) for one in _END.split(line))
    return [one for one in found if 0 < len(one.split()) <= MAX_WORDS]


def _source(
    name: str, licence: str, texts: Callable[[Path], Iterable[str]], note: str = ""
) -> Source:
    def read(data: Path) -> list[Example]:
        judged = _judged(data)
        found = dict.fromkeys(one for text in texts(data) for one in sentences(text))
        return [Example((one,), UNLABELLED) for one in found if one not in judged]

    return Source(name, licence, note or "distinct sentences, no labels", read)


def _judged(data: Path) -> set[str]:
    """Every sentence of the dev and test pairs; a missing test split has none."""
    found = set()
    for split in (stsb.DEV, stsb.TEST):
        try:
            found |= {text for one in split.read(data) for text in one.texts}
        except DataMissing:
            if split is stsb.DEV:
                raise
    return found


def _of(source: Source, sides: int = 2) -> Source:
    """The texts of another task's source: of a pair, the first `sides` texts."""

    def texts(data: Path) -> Iterable[str]:
        return (text for one in source.read(data) for text in one.texts[:sides])

    what = "sentences" if sides == 2 else "premises"
    return _source(source.name, source.licence, texts, f"{what} of {source.note}")


def _file(name: str, licence: str, *keys: str) -> Source:
    """Fields of a JSON-lines file."""

    def texts(data: Path) -> Iterable[str]:
        path = find(data, (f"{name}.jsonl",), dataset=name.partition("/")[0])
        return (record[key] for record in records(path) for key in keys)

    return _source(name, licence, texts)


TRAIN = (
    _of(nli.SNLI_TRAIN, sides=1),  # the hypotheses are short and similar
    _of(nli.MORE[0]),  # MultiNLI
    _of(sst.WHOLE_TRAIN),
    *(_file(name, UNSTATED, "text") for name in ("cr/all", "subj/all", "trec/train")),
)

TASKS = (
    Task(name="embed", kind="embedding", labels=(), train=TRAIN, dev=stsb.DEV, test=stsb.TEST),
)

"""Sentences to learn general embeddings from, without their labels; judged on pairs of STS-B.

No STS-B or SICK training pair is among them, and no sentence of STS-B's dev or test.
"""

import re
from collections.abc import Callable, Iterable
from pathlib import Path

from training.errors import DataMissing
from training.tasks import nli, sst, stsb
from training.tasks.base import Example, Source, Task, find, records

LONGEST = 40
"""Words, with white space between them; longer sentences are left out."""
OF_A_REVIEW = 4
"""So that films are not half of all that is read."""
UNSTATED = "no licence stated with the data"
WIKIPEDIA = "CC BY-SA 3.0"
HERE = "the data folder's README"
_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'(])")
_BREAK = re.compile(r"\s*<br\s*/?>\s*")


def sentences(text: str) -> list[str]:
    """The sentences of a text that are at most LONGEST words long.

    A line break, or a full stop before white space and a capital, ends one.
    """
    found = (one.strip() for line in _BREAK.split(text) for one in _END.split(line))
    return [one for one in found if 0 < len(one.split()) <= LONGEST]


def _source(
    name: str, licence: str, texts: Callable[[Path], Iterable[str]], note: str = ""
) -> Source:
    def read(data: Path) -> list[Example]:
        judged = _judged(data)
        found = dict.fromkeys(one for text in texts(data) for one in sentences(text))
        return [Example((one,), 0) for one in found if one not in judged]

    return Source(name, licence, note or "distinct sentences, no labels", read)


def _judged(data: Path) -> set[str]:
    """Every sentence that a score is taken on; a test split that is not there takes none."""
    found = set()
    for split in (stsb.DEV, stsb.TEST):
        try:
            found |= {text for one in split.read(data) for text in one.texts}
        except DataMissing:
            if split is stsb.DEV:
                raise
    return found


def _of(source: Source) -> Source:
    """The texts of another task's source."""

    def texts(data: Path) -> Iterable[str]:
        return (text for one in source.read(data) for text in one.texts)

    return _source(source.name, source.licence, texts, f"sentences of {source.note}")


def _file(name: str, licence: str, *keys: str) -> Source:
    """Fields of a JSON-lines file."""

    def texts(data: Path) -> Iterable[str]:
        path = find(data, (f"{name}.jsonl",), get_from=HERE)
        return (record[key] for record in records(path) for key in keys)

    return _source(name, licence, texts)


def _beginnings(data: Path) -> Iterable[str]:
    for record in records(find(data, ("imdb/train.jsonl",), get_from=HERE)):
        yield from sentences(record["text"])[:OF_A_REVIEW]


PAIR = ("premise", "hypothesis")
TRAIN = (
    _of(nli.SNLI_TRAIN),
    *map(_of, nli.MORE),
    _file("nli_newprotocols/train", WIKIPEDIA, *PAIR),
    _file("nli_ling_in_loop/train", UNSTATED, *PAIR),
    _file("nli_semi_automatic_wiki/train", WIKIPEDIA, *PAIR),
    _of(sst.WHOLE_TRAIN),
    *(_file(name, UNSTATED, "text") for name in ("cr/all", "mpqa/all", "subj/all", "trec/train")),
    _source(
        "imdb/train", UNSTATED, _beginnings, f"the first {OF_A_REVIEW} sentences of each review"
    ),
)

TASKS = (
    Task(name="embed", kind="embedding", labels=(), train=TRAIN, dev=stsb.DEV, test=stsb.TEST),
)

"""Sentences for general embeddings, without their labels, evaluated on pairs of STS-B.

They include no training pair of STS-B or SICK and no sentence of STS-B's dev or test split.
"""

import random
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from heedful.training.tasks import stsb
from heedful.training.tasks.base import UNLABELLED, Example, Source, Task
from tools.tasks import broad_text, held_out, imdb, nli, nli_sets, sst, trec

MAX_WORDS = 40
"""Longer sentences, in words between white space, are left out."""
TIMES = 2
"""How often an epoch reads these sentences: they are then two fifths of its texts, which keeps the score on STS-B."""
_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'(])")
_BREAK = re.compile(r"\s*<br\s*/?>\s*")


def sentences(text: str) -> list[str]:
    """The sentences of a text that are at most MAX_WORDS words long.

    A line break, or a full stop before white space and a capital, ends one.
    """
    parts = (part.strip() for line in _BREAK.split(text) for part in _END.split(line))
    return [part for part in parts if 0 < len(part.split()) <= MAX_WORDS]


def _source(
    name: str,
    licence: str,
    texts: Callable[[Path], Iterable[str]],
    note: str = "",
    limit: int | None = None,
    times: int = TIMES,
) -> Source:
    """Distinct sentences of some texts, `limit` of them at most, drawn at random and always the same."""

    def read(data: Path) -> list[Example]:
        judged = held_out.keys(data)
        distinct = list(dict.fromkeys(part for text in texts(data) for part in sentences(text)))
        if limit is not None and len(distinct) > limit:
            distinct = random.Random(name).sample(distinct, limit)
        allowed = [text for text in distinct if held_out.key(text) not in judged]
        return times * [Example((text,), UNLABELLED) for text in allowed]

    return Source(name, licence, note or "distinct sentences, no labels", read)


def sentences_of(
    source: Source, part: slice, what: str, limit: int | None = None, times: int = TIMES
) -> Source:
    """Sentences of another task's examples, without labels; `part` selects the texts of an example."""

    def texts(data: Path) -> Iterable[str]:
        return (text for example in source.read(data) for text in example.texts[part])

    note = f"{what} of {source.note}" + (f"; {limit:,} of them at most" if limit else "")
    note += f"; each {times} times" if times > 1 else ""
    return _source(source.name, source.licence, texts, note, limit, times)


FIRST, SECOND, BOTH = slice(0, 1), slice(1, 2), slice(None)
SENTENCES: tuple[tuple[Source, slice, str, int | None], ...] = (
    (nli.SNLI_TRAIN, FIRST, "premises", 25_000),
    (nli.SNLI_TRAIN, SECOND, "hypotheses", 15_000),
    (nli.MNLI_TRAIN, BOTH, "sentences", 40_000),
    (nli.COUNTERFACTUAL, BOTH, "sentences", None),
    (nli_sets.WIDE[0], BOTH, "sentences", 25_000),
    (nli_sets.WIDE[1], BOTH, "sentences", 10_000),
    (imdb.TASKS[0].train[0], BOTH, "sentences", 25_000),
    (sst.WHOLE_TRAIN, BOTH, "sentences", None),
    (trec.TASKS[0].train[0], BOTH, "questions", None),
)
"""SUBJ, CR and MPQA stay out: the frozen vectors are measured on them, and SUBJ holds test sentences of SST."""

TRAIN = (*(sentences_of(*each) for each in SENTENCES), *broad_text.sources())
_ONCE = tuple(sentences_of(*each, times=1) for each in SENTENCES)
SECOND_PHASE = (*_ONCE, *broad_text.sources(0.1, 0.1))
"""Less of the broad text: the second teacher takes eight times as long a text as the first."""
THIRD_PHASE = (*_ONCE, *broad_text.sources(0.5, 0.1))
FOURTH_PHASE = (*_ONCE, *broad_text.sources(0.5, 0.4))

_EMBED = Task(name="embed", kind="embedding", labels=(), train=TRAIN, dev=stsb.DEV, test=stsb.TEST)
TASKS = (
    _EMBED,
    _EMBED.variant("embed-second", *SECOND_PHASE),
    _EMBED.variant("embed-third", *THIRD_PHASE),
    _EMBED.variant("embed-fourth", *FOURTH_PHASE),
)

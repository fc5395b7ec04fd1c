"""Natural language inference for a cross-encoder (`nli-teacher`: every NLI set, and negation) and for its student
(`nli-student`: changed words and equal sentences too); `nli-mined` adds pairs without a label, which the teacher
judges. `nli-genres` has pairs of several genres, and a sample of each other set, for a model that has learned those.
"""

import random
from dataclasses import replace
from pathlib import Path

from heedful.training.tasks import contrast, identity, negation
from heedful.training.tasks.base import Example, Source
from heedful.training.tasks.mined import MINED, near
from heedful.training.tasks.nli import (
    LING_IN_LOOP,
    LING_IN_LOOP_HYPOTHESES,
    MNLI_TRAIN,
    MORE,
    NEW_PROTOCOLS_TRAIN,
    NLI,
    SEMI_AUTOMATIC,
    SNLI_HYPOTHESES,
    SNLI_TRAIN,
    WIDE,
)

SEED = 1


def _sample(source: Source, rows: int) -> Source:
    """At most so many of the source's pairs, drawn with a fixed seed."""

    def read(data: Path) -> list[Example]:
        found = source.read(data)
        return random.Random(SEED).sample(found, min(rows, len(found)))

    return replace(source, note=f"{source.note}; {rows:,} drawn at random", read=read)


def _rehearsed(source: Source, rows: int) -> Source:
    """A sample of what the student has learned before. Its labels stand: this teacher has seen too little of it."""
    some = _sample(source, rows)

    def read(data: Path) -> list[Example]:
        return [replace(one, sure=True) for one in some.read(data)]

    return replace(some, read=read)


LABELLED = (SNLI_TRAIN, *MORE, *WIDE, contrast.TRAIN, negation.TRAIN, identity.TRAIN)
GENRES = (MNLI_TRAIN, LING_IN_LOOP, SEMI_AUTOMATIC, _sample(NEW_PROTOCOLS_TRAIN, 15_000))

TASKS = (
    NLI.variant("nli-teacher", SNLI_TRAIN, *MORE, *WIDE, negation.TRAIN),
    NLI.variant("nli-student", *LABELLED),
    NLI.variant("nli-mined", *LABELLED, SNLI_HYPOTHESES, *MINED),
    NLI.variant(
        "nli-genres",
        *GENRES,
        _rehearsed(SNLI_TRAIN, 20_000),
        _rehearsed(contrast.TRAIN, 12_000),
        _rehearsed(negation.TRAIN, 8_000),
        _rehearsed(identity.TRAIN, 3_000),
    ),
    NLI.variant(
        "nli-genres-mined",
        *GENRES,
        _rehearsed(SNLI_TRAIN, 30_000),
        _rehearsed(contrast.TRAIN, 16_000),
        _rehearsed(negation.TRAIN, 8_000),
        _rehearsed(identity.TRAIN, 3_000),
        _sample(LING_IN_LOOP_HYPOTHESES, 50_000),
        _sample(near(LING_IN_LOOP, 1), 20_000),
    ),
    NLI.variant("nli-wide", *LABELLED, LING_IN_LOOP, SEMI_AUTOMATIC),
    NLI.variant(
        "nli-genres-labelled",
        MNLI_TRAIN,
        LING_IN_LOOP,
        _rehearsed(NEW_PROTOCOLS_TRAIN, 5_000),
        _rehearsed(SNLI_TRAIN, 40_000),
        _rehearsed(contrast.TRAIN, 5_000),
        _rehearsed(negation.TRAIN, 3_000),
        _rehearsed(identity.TRAIN, 1_000),
    ),
)

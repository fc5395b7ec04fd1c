"""Natural language inference for a cross-encoder (`nli-teacher`: every NLI set, and negation) and for its student
(`nli-student`: changed words and equal sentences too); `nli-mined` adds pairs without a label, which the teacher
judges, `nli-plain` pairs in other spellings, with roles exchanged and with longer premises. `nli-wide` has two sets of
other genres besides, `nli-genres` these and a sample of what `nli-student` has."""

from dataclasses import replace
from pathlib import Path

from heedful.training.tasks.base import Example, Source
from heedful.training.tasks.nli import MORE, NLI, SNLI_TRAIN
from heedful.training.tasks.splits import drawn
from tools.tasks import contrast, identity, label_pairs, negation, plain_pairs
from tools.tasks.mined import MINED
from tools.tasks.nli_sets import (
    CONJUNCTIONS,
    FEVER,
    HANS,
    HELP,
    LING_IN_LOOP,
    NEW_PROTOCOLS_TRAIN,
    SCONE,
    SEMI_AUTOMATIC,
    SNLI_HYPOTHESES,
    WIDE,
)


def _sample(source: Source, rows: int) -> Source:
    """At most so many of the source's pairs, drawn with a fixed seed."""

    def read(data: Path) -> list[Example]:
        return drawn(source.read(data), rows)

    return replace(source, note=f"{source.note}; {rows:,} drawn at random", read=read)


LABELLED = (SNLI_TRAIN, *MORE, *WIDE, contrast.TRAIN, negation.TRAIN, identity.TRAIN)
GENRES = (
    _sample(SNLI_TRAIN, 20_000),
    *MORE,
    LING_IN_LOOP,
    SEMI_AUTOMATIC,
    _sample(NEW_PROTOCOLS_TRAIN, 12_000),
    _sample(CONJUNCTIONS, 8_000),
    _sample(contrast.TRAIN, 10_000),
    _sample(negation.TRAIN, 6_000),
    _sample(identity.TRAIN, 3_000),
)

MORE_TEXT = (_sample(FEVER, 6_000), _sample(HANS, 6_000), HELP, SCONE)
TASKS = (
    NLI.variant("nli-teacher", SNLI_TRAIN, *MORE, *WIDE, negation.TRAIN),
    NLI.variant("nli-student", *LABELLED),
    NLI.variant("nli-plain", *LABELLED, plain_pairs.TRAIN, label_pairs.TRAIN, *MORE_TEXT),
    NLI.variant("nli-mined", *LABELLED, SNLI_HYPOTHESES, *MINED),
    NLI.variant("nli-genres", *GENRES),
    NLI.variant("nli-wide", *LABELLED, LING_IN_LOOP, SEMI_AUTOMATIC),
)

"""Natural language inference for a cross-encoder (`nli-teacher`: every NLI set, and negation) and for its student
(`nli-student`: changed words and equal sentences too); `nli-mined` adds pairs without a label, which the teacher
judges. `nli-changed` has pairs in other spellings, with roles exchanged and longer premises, and more of those that
differ in a word; `nli-wide` two sets of other genres, `nli-genres` these and a sample of what `nli-student` has;
`nli-broad` adds generated pairs to these, monotonicity and sentences of labels, and only people's labels are a
teacher's to correct."""

from dataclasses import replace
from pathlib import Path

from heedful.training.tasks.base import UNLABELLED, Example, Source
from tools.tasks import contrast, identity, label_pairs, negation, plain_pairs
from tools.tasks.folds import sample
from tools.tasks.mined import MINED
from tools.tasks.nli import MORE, NLI, SNLI_TRAIN
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

TAUGHT_WORDS = 24
"""Words, by white space, of the longest text that the teacher of `nli-changed` reads."""


def _short_taught(source: Source) -> Source:
    """Pairs with a longer text keep their label, or are left out where they have none.

    They are a fifth of the pairs, and two fifths of the time that a teacher over a transformer takes.
    """

    def read(data: Path) -> list[Example]:
        return [
            pair if short else replace(pair, trusted=True)
            for pair in source.read(data)
            if (short := max(len(text.split()) for text in pair.texts) <= TAUGHT_WORDS)
            or pair.label != UNLABELLED
        ]

    return replace(source, read=read)


def _trusted(source: Source) -> Source:
    """Pairs whose labels no teacher corrects."""
    return replace(
        source, read=lambda data: [replace(pair, trusted=True) for pair in source.read(data)]
    )


LABELLED = (SNLI_TRAIN, *MORE, *WIDE, contrast.TRAIN, negation.TRAIN, identity.TRAIN)
GENRES = (
    sample(SNLI_TRAIN, 20_000),
    *MORE,
    LING_IN_LOOP,
    SEMI_AUTOMATIC,
    sample(NEW_PROTOCOLS_TRAIN, 12_000),
    sample(CONJUNCTIONS, 8_000),
    sample(contrast.TRAIN, 10_000),
    sample(negation.TRAIN, 6_000),
    sample(identity.TRAIN, 3_000),
)
BROAD = (
    *(_trusted(each) if each.name in ("contrast", "negation") else each for each in GENRES),
    *map(_trusted, (HELP, SCONE, sample(FEVER, 6_000), sample(HANS, 6_000))),
    sample(plain_pairs.TEMPLATES, 10_000),
    sample(label_pairs.TRAIN, 15_000),
)
CHANGED = (
    sample(SNLI_TRAIN, 60_000),
    *MORE,
    sample(NEW_PROTOCOLS_TRAIN, 20_000),
    sample(CONJUNCTIONS, 8_000),
    contrast.TRAIN,
    replace(contrast.TRAIN, note=f"{contrast.TRAIN.note}; once more"),
    sample(negation.TRAIN, 15_000),
    sample(identity.TRAIN, 6_000),
    sample(LING_IN_LOOP, 20_000),
    SEMI_AUTOMATIC,
    plain_pairs.TEMPLATES,
    sample(plain_pairs.TRAIN, 60_000),
    sample(label_pairs.TRAIN, 20_000),
    sample(FEVER, 6_000),
    sample(HANS, 6_000),
    HELP,
    SCONE,
)
TASKS = (
    NLI.variant("nli-teacher", SNLI_TRAIN, *MORE, *WIDE, negation.TRAIN),
    NLI.variant("nli-student", *LABELLED),
    NLI.variant("nli-changed", *map(_short_taught, CHANGED)),
    NLI.variant("nli-mined", *LABELLED, SNLI_HYPOTHESES, *MINED),
    NLI.variant("nli-genres", *GENRES),
    NLI.variant("nli-broad", *BROAD),
    NLI.variant("nli-wide", *LABELLED, LING_IN_LOOP, SEMI_AUTOMATIC),
)

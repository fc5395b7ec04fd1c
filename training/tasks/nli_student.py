"""Natural language inference for a cross-encoder (`nli-teacher`: every NLI set, and negation) and for its student
(`nli-student`: changed words too); `nli-mined` adds pairs without a label, which the teacher judges."""

from heedful.training.tasks import contrast, negation
from heedful.training.tasks.mined import MINED
from heedful.training.tasks.nli import (
    MORE,
    SNLI_HYPOTHESES,
    SNLI_TRAIN,
    WIDE,
    task,
)

LABELLED = (SNLI_TRAIN, *MORE, *WIDE, contrast.TRAIN, negation.TRAIN)

TASKS = (
    task("nli-teacher", (SNLI_TRAIN, *MORE, *WIDE, negation.TRAIN)),
    task("nli-student", LABELLED),
    task("nli-mined", (*LABELLED, SNLI_HYPOTHESES, *MINED)),
)

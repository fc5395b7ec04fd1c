"""Natural language inference for a cross-encoder (`nli-teacher`: every NLI set, and negation) and for its student
(`nli-student`: changed words and equal sentences too); `nli-mined` adds pairs without a label, which the teacher
judges."""

from heedful.training.tasks import contrast, identity, negation
from heedful.training.tasks.mined import MINED
from heedful.training.tasks.nli import MORE, NLI, SNLI_HYPOTHESES, SNLI_TRAIN, WIDE

LABELLED = (SNLI_TRAIN, *MORE, *WIDE, contrast.TRAIN, negation.TRAIN, identity.TRAIN)

TASKS = (
    NLI.variant("nli-teacher", SNLI_TRAIN, *MORE, *WIDE, negation.TRAIN),
    NLI.variant("nli-student", *LABELLED),
    NLI.variant("nli-mined", *LABELLED, SNLI_HYPOTHESES, *MINED),
)

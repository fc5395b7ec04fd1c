"""Natural language inference for a cross-encoder (`nli-teacher`: every NLI set, and negation) and for its student
(`nli-student`: changed words too); `nli-mined` adds pairs without a label, which the teacher judges."""

from heedful.text.kinds import NLI_LABELS
from heedful.training.tasks import contrast, negation
from heedful.training.tasks.base import Source, Task
from heedful.training.tasks.mined import MINED
from heedful.training.tasks.nli import (
    MORE,
    SNLI_DEV,
    SNLI_HYPOTHESES,
    SNLI_TEST,
    SNLI_TRAIN,
    WIDE,
)

LABELLED = (SNLI_TRAIN, *MORE, *WIDE, contrast.TRAIN, negation.TRAIN)


def _task(name: str, train: tuple[Source, ...]) -> Task:
    return Task(name=name, kind="nli", labels=NLI_LABELS, train=train, dev=SNLI_DEV, test=SNLI_TEST)


TASKS = (
    _task("nli-teacher", (SNLI_TRAIN, *MORE, *WIDE, negation.TRAIN)),
    _task("nli-student", LABELLED),
    _task("nli-mined", (*LABELLED, SNLI_HYPOTHESES, *MINED)),
)

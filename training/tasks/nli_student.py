"""Natural language inference for a student of a cross-encoder: every NLI set, with changed words and negation."""

from heedful.text.kinds import NLI_LABELS
from heedful.training.tasks import contrast, negation
from heedful.training.tasks.base import Task
from heedful.training.tasks.nli import MORE, SNLI_DEV, SNLI_TEST, SNLI_TRAIN, WIDE

TASKS = (
    Task(
        name="nli-student",
        kind="nli",
        labels=NLI_LABELS,
        train=(SNLI_TRAIN, *MORE, *WIDE, contrast.TRAIN, negation.TRAIN),
        dev=SNLI_DEV,
        test=SNLI_TEST,
    ),
)

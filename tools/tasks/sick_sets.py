"""SICK as tasks: relatedness, and entailment."""

from heedful.text.kinds import NLI_LABELS
from heedful.training.tasks import sick
from heedful.training.tasks.base import Example, Task
from tools.tasks.nli import SNLI_TRAIN

ENTAILMENT = sick.sources(lambda pair: Example(pair[0], pair[2]))
TASKS = tuple(
    Task(name, kind, labels, (found["train"],), found["dev"], found["test"], (SNLI_TRAIN,))
    for name, kind, labels, found in (
        ("sick-relatedness", "relatedness", (), sick.RELATEDNESS),
        ("sick-entailment", "nli", NLI_LABELS, ENTAILMENT),
    )
)

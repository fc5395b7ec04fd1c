"""SICK as tasks: relatedness, and entailment."""

from heedful.text.kinds import NLI_LABELS, Kind
from heedful.training.tasks import sick
from heedful.training.tasks.base import Example, Source, Task
from tools.tasks.nli import SNLI_TRAIN

ENTAILMENT = sick.sources(lambda pair: Example(pair[0], pair[2]))


def _task(name: str, kind: Kind, labels: tuple[str, ...], splits: dict[str, Source]) -> Task:
    return Task(
        name, kind, labels, (splits["train"],), splits["dev"], splits["test"], (SNLI_TRAIN,)
    )


TASKS = (
    _task("sick-relatedness", "relatedness", (), sick.RELATEDNESS),
    _task("sick-entailment", "nli", NLI_LABELS, ENTAILMENT),
)

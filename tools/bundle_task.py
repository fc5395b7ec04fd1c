"""The task that a bundle is scored on."""

from heedful.runtime.bundles.bundle import Bundle
from heedful.training import tasks
from heedful.training.errors import ConfigError
from heedful.training.tasks.base import Task


def task_of(bundle: Bundle) -> Task:
    """The card's task. Raises ConfigError where it is of another kind."""
    task = tasks.get(bundle.card.task)
    if task.kind != bundle.card.kind:
        raise ConfigError(
            f"task {task.name} is of kind {task.kind}, {bundle.card.name} of kind "
            f"{bundle.card.kind}"
        )
    return task

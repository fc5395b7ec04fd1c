"""The task that a bundle is scored on."""

from heedful.runtime.bundles.bundle import Bundle
from heedful.training import tasks
from heedful.training.errors import ConfigError
from heedful.training.tasks.base import Task


def task_of(bundle: Bundle) -> Task:
    """The card's task. Raises ConfigError where it is of another kind."""
    chosen = tasks.get(bundle.card.task)
    if chosen.kind != bundle.card.kind:
        raise ConfigError(
            f"task {chosen.name} is of kind {chosen.kind}, {bundle.card.name} of kind "
            f"{bundle.card.kind}"
        )
    return chosen

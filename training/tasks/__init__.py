"""The datasets by name, one file each."""

from training.errors import ConfigError
from training.tasks import embed, nli, sick, sst, stsb
from training.tasks.base import Example, Task

TASKS: dict[str, Task] = {
    task.name: task for task in (*sst.TASKS, *nli.TASKS, *sick.TASKS, *stsb.TASKS, *embed.TASKS)
}

__all__ = ["TASKS", "Example", "Task", "get"]


def get(name: str) -> Task:
    """The task `name`. Raises ConfigError naming what is known."""
    if name not in TASKS:
        raise ConfigError(f"no task {name!r}: known are {', '.join(sorted(TASKS))}")
    return TASKS[name]

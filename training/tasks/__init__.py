"""The datasets by name, one file each."""

from training.tasks import nli, sst
from training.tasks.base import DataMissing, Example, Task

TASKS: dict[str, Task] = {task.name: task for task in (*sst.TASKS, *nli.TASKS)}

__all__ = ["TASKS", "DataMissing", "Example", "Task", "get"]


def get(name: str) -> Task:
    """The task `name`. Raises ValueError naming what is known."""
    if name not in TASKS:
        raise ValueError(f"no task {name!r}: known are {', '.join(sorted(TASKS))}")
    return TASKS[name]

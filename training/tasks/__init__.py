"""The tasks by name; each dataset has a file."""

import sys
from importlib import import_module

from heedful.training.errors import ConfigError
from heedful.training.tasks import nli, sick, sst, stsb
from heedful.training.tasks.base import Example, Task

FILES = (sst, nli, sick, stsb)
TASKS: dict[str, Task] = {task.name: task for file in FILES for task in file.TASKS}

__all__ = ["TASKS", "Example", "Task", "add", "get"]


def add(module: str) -> None:
    """Add the tasks in `TASKS` of a module, installed or in the working folder; none for "". Raises ConfigError."""
    if not module:
        return
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        more = import_module(module).TASKS
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"--tasks {module}: no module with a list TASKS: {error}") from error
    TASKS.update({task.name: task for task in more})


def get(name: str) -> Task:
    """The task `name`, or one of its folds (`cr:3`). Raises ConfigError naming the known tasks."""
    if name not in TASKS:
        known = sorted(name for name in TASKS if ":" not in name)
        raise ConfigError(
            f"no task {name!r}: known are {', '.join(known)}; --tasks names a module with more"
        )
    return TASKS[name]

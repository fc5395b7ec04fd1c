"""The registry of tasks by name."""

import sys
from importlib import import_module
from pathlib import Path

from heedful.training.errors import ConfigError
from heedful.training.tasks.base import Example, Task

TASKS: dict[str, Task] = {}
CHECKOUT = Path(__file__).resolve().parents[2]
"""In a checkout, the root of the repository, whose `tools/tasks` has the tasks of its `configs/`."""

__all__ = ["TASKS", "Example", "Task", "add", "get"]


def add(module: str) -> None:
    """Add the tasks of a checkout, then those in the list `TASKS` of a module, installed or in the working folder.

    Raises ConfigError.
    """
    if (CHECKOUT / "tools" / "tasks").is_dir():
        _add("tools.tasks", str(CHECKOUT))
    if module:
        _add(module, "")


def _add(module: str, folder: str) -> None:
    if folder not in sys.path:
        sys.path.insert(0, folder)
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
            f"no task {name!r}: known are {', '.join(known) or 'none'}; --tasks names a module with more"
        )
    return TASKS[name]

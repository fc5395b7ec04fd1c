"""The tasks by name; each dataset has a file."""

from heedful.training.errors import ConfigError
from heedful.training.tasks import (
    contrast,
    cr,
    embed,
    identity,
    imdb,
    label_pairs,
    mnli,
    mpqa,
    negation,
    news,
    nli,
    nli_student,
    plain_pairs,
    r8,
    sentiment,
    sick,
    sst,
    sst_student,
    stsb,
    subj,
    trec,
    yelp,
)
from heedful.training.tasks.base import Example, Task

FILES = (
    sst,
    sentiment,
    sst_student,
    nli,
    mnli,
    contrast,
    negation,
    identity,
    plain_pairs,
    label_pairs,
    nli_student,
    sick,
    stsb,
    embed,
    trec,
    cr,
    mpqa,
    subj,
    r8,
    imdb,
    yelp,
    news,
)
TASKS: dict[str, Task] = {task.name: task for file in FILES for task in file.TASKS}

__all__ = ["TASKS", "Example", "Task", "get"]


def get(name: str) -> Task:
    """The task `name`, or one of its folds (`cr:3`). Raises ConfigError naming the known tasks."""
    if name not in TASKS:
        known = sorted(name for name in TASKS if ":" not in name)
        raise ConfigError(f"no task {name!r}: known are {', '.join(known)}")
    return TASKS[name]

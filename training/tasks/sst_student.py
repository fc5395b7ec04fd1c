"""The tasks of `sst` with sentences of other texts, which a teacher judges."""

from dataclasses import replace

from heedful.training.tasks import sentiment, sst

TASKS = tuple(
    replace(task, name=f"{task.name}-student", train=(*task.train, *sentiment.SENTENCES))
    for task in sst.TASKS
)

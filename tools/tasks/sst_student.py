"""The tasks of `sst` with sentences of other texts, which a teacher judges."""

from tools.tasks import sentiment, sst

TASKS = tuple(
    task.variant(f"{task.name}-student", *task.train, *sentiment.SENTENCES) for task in sst.TASKS
)

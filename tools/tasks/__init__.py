"""Tasks that the shipped models learn from, which no user needs: `--tasks tools.tasks` adds them to the papers'."""

from tools.tasks import (
    contrast,
    embed,
    identity,
    label_pairs,
    negation,
    nli_student,
    plain_pairs,
    sentiment,
    sst_student,
    trec_taught,
)

FILES = (
    sentiment,
    sst_student,
    contrast,
    negation,
    identity,
    plain_pairs,
    label_pairs,
    nli_student,
    embed,
    trec_taught,
)
TASKS = tuple(task for file in FILES for task in file.TASKS)

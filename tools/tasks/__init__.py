"""Tasks that no user needs: those that the shipped models learn from, and datasets of the papers that none ships for.

`--tasks tools.tasks` adds them, with the encoders that the papers compare with and the cross-encoders that teach.
"""

import tools.cross_encoder
import tools.encoders  # noqa: F401
from tools.tasks import (
    contrast,
    embed,
    identity,
    imdb,
    label_pairs,
    mnli,
    negation,
    news,
    nli_student,
    plain_pairs,
    r8,
    senteval,
    sentiment,
    sst_student,
    trec,
    trec_taught,
    yelp,
)

FILES = (
    trec,
    r8,
    imdb,
    mnli,
    news,
    senteval,
    yelp,
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

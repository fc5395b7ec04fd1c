"""The datasets of the papers, and the tasks that the shipped models learn from.

In a checkout `heedful train` and `export` know them, the papers' baselines and the cross-encoders.
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
    nli,
    nli_student,
    plain_pairs,
    r8,
    senteval,
    sentiment,
    sick_sets,
    sst,
    sst_student,
    stsb_relatedness,
    trec,
    trec_taught,
    yelp,
)

FILES = (
    sst,
    nli,
    sick_sets,
    stsb_relatedness,
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

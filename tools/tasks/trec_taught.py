"""TREC's questions with others without a label, which a teacher judges (`trec-taught`)."""

import random
from collections.abc import Sequence

from heedful.training.tasks.base import UNLABELLED, Example, Source
from tools.tasks.labelled import UNSTATED
from tools.tasks.trec import TRAIN, TREC, WHOLE

JOINED = 40_000


def joined(questions: Sequence[Example], number: int) -> list[Example]:
    """Up to `number` distinct texts: the beginning of one question with the end of another, unlabelled.

    Few of them make sense, but their words are those of questions (Tang et al. 2019, section 3.3, sample from
    n-grams for the same purpose).
    """
    rng = random.Random(1)
    distinct: dict[str, None] = {}
    for _ in range(20 * number):
        first, second = (each.texts[0].split() for each in rng.sample(questions, 2))
        begin, end = rng.randint(1, len(first)), rng.randint(1, len(second))
        distinct[" ".join([*first[:begin], *second[-end:]])] = None
        if len(distinct) == number:
            break
    return [Example((text,), UNLABELLED) for text in distinct]


_note = f"{JOINED:,} beginnings of questions joined with ends of others, without a label"
_joined = Source("trec", UNSTATED, _note, lambda data: joined(TRAIN(data), JOINED))
TASKS = (TREC.variant("trec-taught", WHOLE, _joined),)

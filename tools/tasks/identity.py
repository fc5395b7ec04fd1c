"""Pairs of a sentence and itself, which entails itself (`identity`).

In other sets sentences that are nearly alike often contradict each other (`contrast`, `negation`), and hardly any are
equal: a model that learns from those alone takes equal sentences for a contradiction.
"""

import random
from collections.abc import Iterable
from pathlib import Path

from heedful.text.kinds import NLI_LABELS
from heedful.training.tasks import stsb
from heedful.training.tasks.base import Example, Reader, Source, Task
from tools.tasks import mnli, nli, nli_sets

SEED = 1
TRAIN_PAIRS, DEV_PAIRS = 30_000, 1_500
_ENTAILMENT = NLI_LABELS.index("entailment")


def pairs(texts: Iterable[str], number: int) -> list[Example]:
    """Each of `number` distinct texts, or of all if there are fewer, with itself."""
    distinct = sorted(set(texts))
    random.Random(SEED).shuffle(distinct)
    return [Example((text, text), _ENTAILMENT, trusted=True) for text in distinct[:number]]


def _equal_shares(*readers: Reader, number: int) -> Reader:
    """Reads `number` pairs, as many of each set's texts."""

    def read(data: Path) -> list[Example]:
        sets = ([text for example in read(data) for text in example.texts] for read in readers)
        return [pair for texts in sets for pair in pairs(texts, number // len(readers))]

    return read


TRAIN = Source(
    "identity",
    f"{nli.SNLI_LICENCE}; {nli.MNLI_LICENCE}; {nli_sets.WIKIPEDIA}",
    "30,000 train sentences of SNLI, MultiNLI and New Protocols, each paired with itself",
    _equal_shares(
        nli.SNLI_TRAIN.read,
        nli.MNLI_TRAIN.read,
        nli_sets.NEW_PROTOCOLS_TRAIN.read,
        number=TRAIN_PAIRS,
    ),
)
DEV = Source(
    "identity",
    f"{nli.SNLI_LICENCE}; {nli.MNLI_LICENCE}; {stsb.LICENCE}",
    "1,500 dev sentences of SNLI, MultiNLI and STS-B, each paired with itself",
    _equal_shares(nli.SNLI_DEV.read, mnli.DEV.read, stsb.DEV.read, number=DEV_PAIRS),
)
TASKS = (Task("identity", "nli", NLI_LABELS, (TRAIN,), DEV, nli.SNLI_TEST),)

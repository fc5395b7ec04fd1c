"""Comprehensiveness and sufficiency over every k, between the best and the worst order that were found.

The k first tokens of an order are removed (comprehensiveness: the larger the drop, the better), or the
others are (sufficiency: the smaller, the better). Keeping the first k is removing the last L - k, so the
reversed order has the one curve where the order has the other. The best and the worst order are searched
for greedily, since there are L! of them; every other order that is tried counts as well.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from heedful.runtime.engine.work import Steps
from heedful.runtime.explain.run import Prediction
from heedful.text.arrays import AnyFloats, Doubles
from heedful.text.batch import Sentence
from heedful.text.parse import Parse
from heedful.text.pieces import Lexicon
from heedful.text.vocab import Vocab

MAX_CURVE_TOKENS = 24
"""Longest sentence with curves: their cost grows with the cube of its length."""
RANDOM_ORDERS = 5
"""Each is used backwards too."""
SEED = 0

UNREADABLE = "\u200d"
"""A zero-width joiner: a tokenizer of pieces drops it, and reads [UNK]."""

Order = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Curve:
    """Drops of the score for k = 1 .. L - 1; means of both curves, 1 at the best order and 0 at the worst."""

    name: str  # "attention" (the first pooling), "evidence" or "random"
    comprehensiveness: Doubles  # (L - 1,)
    sufficiency: Doubles  # (L - 1,)
    normalised_comprehensiveness: float | None  # None where every order is as good
    normalised_sufficiency: float | None


@dataclass(frozen=True, slots=True)
class Curves:
    best: Doubles  # (L - 1,) drops of the best order found
    worst: Doubles
    orders: list[Curve]


@dataclass(frozen=True, slots=True)
class SentenceCurves:
    deleted: Curves  # to nothing: the sentence is shorter
    masked: Curves  # to the mask vector: the tree and the positions stay


def curves(
    prediction: Prediction, parse: Parse, side: int, evidence: Doubles
) -> Steps[SentenceCurves]:
    """Both curves of the sentence `side`, of two tokens or more, by attention, evidence and at random."""
    rng = np.random.default_rng(SEED)
    orders = {"attention": [_order(prediction.attention(side))], "evidence": [_order(evidence)]}
    drawn = [tuple(rng.permutation(len(parse)).tolist()) for _ in range(RANDOM_ORDERS)]
    orders["random"] = [*drawn, *(order[::-1] for order in drawn)]
    deleted = yield from _curves(_Drops(prediction, parse, side, mask=False), orders)
    masked = yield from _curves(_Drops(prediction, parse, side, mask=True), orders)
    return SentenceCurves(deleted, masked)


def masked(vocab: Lexicon, parse: Parse, gone: Collection[int]) -> Sentence:
    """The sentence with a zero vector, or with [UNK] of a model of pieces, in place of the words `gone`."""
    if isinstance(vocab, Vocab):
        return vocab.masked(vocab.sentence(parse.tokens, parse.heads), sorted(gone))
    tokens = [UNREADABLE if i in gone else token for i, token in enumerate(parse.tokens)]
    return vocab.sentence(tokens, parse.heads)


def _order(weights: AnyFloats) -> Order:
    return tuple(np.argsort(-weights, kind="stable").tolist())


class _Drops:
    """The score's drop without each set of tokens; every set is computed once."""

    def __init__(self, prediction: Prediction, parse: Parse, side: int, *, mask: bool) -> None:
        self._prediction, self._parse, self._side, self._mask = prediction, parse, side, mask
        self._known: dict[frozenset[int], float] = {}

    def of(self, sets: Sequence[frozenset[int]]) -> Steps[Doubles]:
        missing = list(dict.fromkeys(gone for gone in sets if gone not in self._known))
        if missing:
            vectors = yield from self._prediction.run.vectors(list(map(self._without, missing)))
            drops = yield from self._prediction.drops(self._side, vectors)
            self._known.update(zip(missing, drops.tolist(), strict=True))
        return np.array([self._known[gone] for gone in sets])

    def _without(self, gone: frozenset[int]) -> Sentence:
        model = self._prediction.run.model
        if self._mask:
            return masked(model.vocab, self._parse, gone)
        return model.sentence(self._parse).without(sorted(gone))

    def curve(self, order: Order) -> Steps[Doubles]:
        """(L - 1,) drops without the first 1, 2 .. L - 1 tokens of the order."""
        return (yield from self.of([frozenset(order[:k]) for k in range(1, len(order))]))

    def greedy(self, sign: int) -> Steps[Order]:
        """An order that removes, each time, the token with the largest (1) or smallest (-1) drop."""
        order: list[int] = []
        left = list(range(len(self._parse)))
        while len(left) > 1:
            drops = yield from self.of([frozenset([*order, token]) for token in left])
            order.append(left.pop(int((sign * drops).argmax())))
        return (*order, *left)


def _curves(drops: _Drops, orders: Mapping[str, Sequence[Order]]) -> Steps[Curves]:
    forward: dict[str, list[Doubles]] = {name: [] for name in orders}
    backward: dict[str, list[Doubles]] = {name: [] for name in orders}
    every: list[Doubles] = []
    for sign in (1, -1):
        every.append((yield from drops.curve((yield from drops.greedy(sign)))))
    for name, order in ((name, order) for name, tried in orders.items() for order in tried):
        forward[name].append((yield from drops.curve(order)))
        backward[name].append((yield from drops.curve(order[::-1])))
        every += [forward[name][-1], backward[name][-1]]
    best, worst = max(every, key=np.mean), min(every, key=np.mean)
    span = best.mean() - worst.mean()
    by_order = []
    for name in orders:
        comprehensiveness = np.mean(forward[name], axis=0)
        reverse = np.mean(backward[name], axis=0)
        by_order.append(
            Curve(
                name,
                comprehensiveness,
                np.ascontiguousarray(reverse[::-1]),  # keeping k is removing the last L - k
                float((comprehensiveness.mean() - worst.mean()) / span) if span else None,
                float((best.mean() - reverse.mean()) / span) if span else None,
            )
        )
    return Curves(best, worst, by_order)

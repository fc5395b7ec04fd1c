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
from heedful.text.arrays import Doubles
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
    prediction: Prediction, parses: Sequence[Parse], side: int, evidence: Doubles
) -> Steps[SentenceCurves]:
    """Both curves of sentence `side`, of two tokens or more, by attention, evidence and at random."""
    shading = next(iter(prediction.found[side].pooling.values()))[0]
    length = len(parses[side])
    rng = np.random.default_rng(SEED)
    orders = {"attention": [_order(shading)], "evidence": [_order(evidence)]}
    drawn = [tuple(rng.permutation(length).tolist()) for _ in range(RANDOM_ORDERS)]
    orders["random"] = [*drawn, *(order[::-1] for order in drawn)]
    deleted = yield from _curves(_Drops(prediction, parses[side], side, mask=False), orders)
    masked = yield from _curves(_Drops(prediction, parses[side], side, mask=True), orders)
    return SentenceCurves(deleted, masked)


def masked(vocab: Lexicon, parse: Parse, gone: Collection[int]) -> Sentence:
    """The sentence with a zero vector, or with [UNK] of a model of pieces, in place of the words `gone`."""
    if isinstance(vocab, Vocab):
        return vocab.masked(vocab.sentence(parse.tokens, parse.heads), sorted(gone))
    tokens = [UNREADABLE if i in gone else token for i, token in enumerate(parse.tokens)]
    return vocab.sentence(tokens, parse.heads)


def _order(weights: Doubles) -> Order:
    return tuple(np.argsort(-weights, kind="stable").tolist())


class _Drops:
    """The score's drop without each set of tokens; every set is computed once."""

    def __init__(self, prediction: Prediction, parse: Parse, side: int, mask: bool) -> None:
        self.length = len(parse)
        self._prediction, self._parse, self._side, self._mask = prediction, parse, side, mask
        self._known: dict[frozenset[int], float] = {}

    def of(self, sets: Sequence[frozenset[int]]) -> Steps[list[float]]:
        missing = list(dict.fromkeys(one for one in sets if one not in self._known))
        if missing:
            vectors = yield from self._prediction.run.vectors(
                [self._without(gone) for gone in missing]
            )
            found = yield from self._prediction.drops(self._side, vectors)
            self._known.update(zip(missing, found.tolist(), strict=True))
        return [self._known[one] for one in sets]

    def _without(self, gone: frozenset[int]) -> Sentence:
        model = self._prediction.run.model
        if not self._mask:
            return model.sentence(self._parse).without(sorted(gone))
        return masked(model.vocab, self._parse, gone)

    def curve(self, order: Order) -> Steps[Doubles]:
        """(L - 1,) drops without the first 1, 2 .. L - 1 tokens of the order."""
        sets = [frozenset(order[:k]) for k in range(1, self.length)]
        return np.array((yield from self.of(sets)))

    def greedy(self, sign: int) -> Steps[Order]:
        """An order that removes, each time, the token with the largest (1) or smallest (-1) drop."""
        order: list[int] = []
        left = list(range(self.length))
        while left:
            sets = [frozenset([*order, token]) for token in left]
            drops = np.zeros(1)
            if len(left) > 1:
                drops = np.array((yield from self.of(sets)))
            order.append(left.pop(int((sign * drops).argmax())))
        return tuple(order)


def _curves(drops: _Drops, orders: Mapping[str, Sequence[Order]]) -> Steps[Curves]:
    found: dict[str, list[tuple[Doubles, Doubles]]] = {name: [] for name in orders}
    for name, tried in orders.items():
        for order in tried:
            forward = yield from drops.curve(order)
            backward = yield from drops.curve(order[::-1])
            found[name].append((forward, backward))
    searched = []
    for sign in (1, -1):
        order = yield from drops.greedy(sign)
        searched.append((yield from drops.curve(order)))
    every = [*searched, *(curve for tried in found.values() for both in tried for curve in both)]
    best, worst = max(every, key=_area), min(every, key=_area)
    span = _area(best) - _area(worst)
    made = []
    for name, both in found.items():
        comprehensiveness = np.mean([first for first, _ in both], axis=0)
        backwards = np.mean([second for _, second in both], axis=0)
        made.append(
            Curve(
                name,
                comprehensiveness,
                np.ascontiguousarray(backwards[::-1]),  # keeping k is removing the last L - k
                (_area(comprehensiveness) - _area(worst)) / span if span else None,
                (_area(best) - _area(backwards)) / span if span else None,
            )
        )
    return Curves(best, worst, made)


def _area(curve: Doubles) -> float:
    return float(curve.mean())

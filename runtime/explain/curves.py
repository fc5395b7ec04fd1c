"""Comprehensiveness and sufficiency for each k, relative to the best and the worst known order of the tokens.

Comprehensiveness removes the first k tokens of an order: the larger the drop, the better. Sufficiency removes the
others: the smaller the drop, the better. Keeping the first k is removing the last L - k, so the sufficiency of an order
is the comprehensiveness of the reversed order. The best and the worst of the L! orders are searched greedily, and are
replaced by any better or worse order among those that are scored.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from heedful.runtime.engine.work import Steps
from heedful.runtime.explain.run import Prediction
from heedful.text.arrays import AnyFloats, Doubles
from heedful.text.batch import PAD, Sentence
from heedful.text.parse import Parse
from heedful.text.pieces import Lexicon
from heedful.text.vocab import Vocab

MAX_CURVE_TOKENS = 24
"""Longest sentence with curves: their cost grows with the cube of its length."""
RANDOM_ORDERS = 5
"""Each is scored reversed too."""
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
    normalised_comprehensiveness: float | None  # None where all orders are equally good
    normalised_sufficiency: float | None


@dataclass(frozen=True, slots=True)
class Curves:
    best: Doubles  # (L - 1,) drops of the best known order
    worst: Doubles
    orders: list[Curve]


@dataclass(frozen=True, slots=True)
class SentenceCurves:
    deleted: Curves  # the sentence is shorter without the tokens
    masked: Curves  # the mask vector replaces the tokens: the tree and the positions stay


def curves(
    prediction: Prediction, parse: Parse, side: int, evidence: Doubles
) -> Steps[SentenceCurves]:
    """Both curves of the sentence `side`, of two tokens or more, by attention, evidence and at random."""
    rng = np.random.default_rng(SEED)
    orders = {"attention": [_order(prediction.attention(side))], "evidence": [_order(evidence)]}
    random = [tuple(rng.permutation(len(parse)).tolist()) for _ in range(RANDOM_ORDERS)]
    orders["random"] = [*random, *(order[::-1] for order in random)]
    deleted = yield from _curves(_Drops(prediction, parse, side, mask=False), orders)
    masked = yield from _curves(_Drops(prediction, parse, side, mask=True), orders)
    return SentenceCurves(deleted, masked)


def masked(vocab: Lexicon, parse: Parse, removed: Collection[int]) -> Sentence:
    """The sentence with the padding's vector, zero, or [UNK] of word pieces, in place of the words at `removed`."""
    if isinstance(vocab, Vocab):
        sentence = vocab.sentence(parse.tokens, parse.heads)
        ids = sentence.ids.copy()
        ids[list(removed)] = PAD
        return replace(sentence, ids=ids)
    tokens = [UNREADABLE if i in removed else token for i, token in enumerate(parse.tokens)]
    return vocab.sentence(tokens, parse.heads)


def _order(weights: AnyFloats) -> Order:
    return tuple(np.argsort(-weights, kind="stable").tolist())


class _Drops:
    """The score's drop without a set of tokens. Each set is computed once."""

    def __init__(self, prediction: Prediction, parse: Parse, side: int, *, mask: bool) -> None:
        self._prediction, self._parse, self._side, self._mask = prediction, parse, side, mask
        self._known: dict[frozenset[int], float] = {}

    def of(self, sets: Sequence[frozenset[int]]) -> Steps[Doubles]:
        """(N,) the drop for each set."""
        missing = list(dict.fromkeys(removed for removed in sets if removed not in self._known))
        if missing:
            drops = yield from self._drops(missing)
            self._known.update(zip(missing, drops.tolist(), strict=True))
        return np.array([self._known[removed] for removed in sets])

    def _drops(self, sets: Sequence[frozenset[int]]) -> Steps[Doubles]:
        if not self._mask:
            return (yield from self._prediction.drops_without(self._side, [*map(sorted, sets)]))[0]
        run = self._prediction.run
        sentences = [masked(run.model.vocab, self._parse, removed) for removed in sets]
        vectors = yield from run.vectors(sentences)
        return (yield from self._prediction.drops(self._side, vectors))[0]

    def curve(self, order: Order) -> Steps[Doubles]:
        """(L - 1,) drops without the first 1, 2 .. L - 1 tokens of the order."""
        return (yield from self.of([frozenset(order[:k]) for k in range(1, len(order))]))

    def greedy(self, sign: int) -> Steps[Order]:
        """An order that removes, each time, the token with the largest (1) or smallest (-1) drop."""
        order: list[int] = []
        remaining = list(range(len(self._parse)))
        while len(remaining) > 1:
            drops = yield from self.of([frozenset([*order, token]) for token in remaining])
            order.append(remaining.pop(int((sign * drops).argmax())))
        return (*order, *remaining)


def _curves(drops: _Drops, orders: Mapping[str, Sequence[Order]]) -> Steps[Curves]:
    forward: dict[str, list[Doubles]] = {name: [] for name in orders}
    backward: dict[str, list[Doubles]] = {name: [] for name in orders}
    all_curves: list[Doubles] = []
    for sign in (1, -1):
        all_curves.append((yield from drops.curve((yield from drops.greedy(sign)))))
    for name, named_orders in orders.items():
        for order in named_orders:
            forward[name].append((yield from drops.curve(order)))
            backward[name].append((yield from drops.curve(order[::-1])))
            all_curves += [forward[name][-1], backward[name][-1]]
    best, worst = max(all_curves, key=np.mean), min(all_curves, key=np.mean)
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

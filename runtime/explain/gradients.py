"""Integrated gradients of the predicted score (Sundararajan et al. 2017, equation 1), one weight per token.

The path leads from zero vectors in place of all words to the words' vectors; tokens, tree and positions stay. It is
divided into intervals. Along each, the vectors move one after the other, once in the order of the tokens and once in
the reverse order. A token's weight is the mean change of the score by its two moves, so the weights of an interval add
up to the score's change along it. On short intervals the steps approach the straight path: the difference between the
weights of the two orders shows the remaining error, and the intervals with the largest differences are halved.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from heedful.runtime.engine.work import Steps
from heedful.runtime.errors import BadInput
from heedful.runtime.explain.correlation import Correlation, correlations
from heedful.runtime.explain.run import Prediction
from heedful.text.arrays import Doubles, Ints
from heedful.text.batch import Sentence

MAX_GRADIENT_TOKENS = 48
"""Longest sentence: an interval costs two runs of it for each token."""
INTERVALS, MAX_INTERVALS = 8, 256
"""The initial number of intervals, and the largest."""
TOLERANCE = 0.1
"""Largest sum of the intervals' spreads, relative to the sum of |weights|. The weights are then within 3 % of the
straight path's (docs/notes/gradients.md)."""


@dataclass(frozen=True, slots=True)
class Gradients:
    """`weights` (L,) sum to `score` - `baseline`, but for `error`."""

    weights: Doubles
    score: float  # of the sentence
    baseline: float  # the score with a zero vector for each word
    error: float | None  # of the weights' sum, relative to score - baseline; None where this is 0
    spread: float  # between a weight's two orders and their mean, summed, relative to the sum of |weights|
    intervals: int
    correlations: list[Correlation]


class _Intervals(NamedTuple):
    """N intervals of the path, which is from 0 to 1, and the score's change by each token's move in either order."""

    ends: Doubles  # (N, 2)
    forward: Doubles  # (N, L)
    backward: Doubles  # (N, L)

    @property
    def weights(self) -> Doubles:
        """(L,)"""
        weights: Doubles = (self.forward + self.backward).sum(0) / 2
        return weights

    @property
    def spread(self) -> Doubles:
        """(N, L), signed: the first order's weights minus the mean of the two."""
        return (self.forward - self.backward) / 2


def gradients(prediction: Prediction, side: int, sentence: Sentence) -> Steps[Gradients]:
    """Integrate along the path of the sentence `side`. Raises BadInput where the bundle's graph cannot."""
    if not prediction.run.explain_graph.scalable:
        raise BadInput(
            f"{prediction.run.model.card.name} has no gradients: its explain.onnx cannot scale word vectors; "
            "export its run again, unless it is a model of word pieces",
            param="gradients",
            code="no_gradients",
        )

    def scores(scales: Doubles) -> Steps[Doubles]:
        """(N,) with the word vectors scaled by (N, L)."""
        vectors = yield from prediction.run.scaled(sentence, scales.astype(np.float32))
        return (yield from prediction.scores_with(side, vectors))

    baseline, score = yield from scores(np.array([[0.0], [1.0]]) * np.ones(len(sentence)))
    bounds = np.linspace(0, 1, INTERVALS + 1)
    intervals = yield from _measured(scores, np.stack([bounds[:-1], bounds[1:]], 1), len(sentence))
    while len(worst := _worst(intervals)) and len(intervals.ends) < MAX_INTERVALS:
        worst = worst[: MAX_INTERVALS - len(intervals.ends)]
        first, last = intervals.ends[worst].T
        middle = (first + last) / 2
        ends = np.concatenate([np.stack([first, middle], 1), np.stack([middle, last], 1)])
        halves = yield from _measured(scores, ends, len(sentence))
        pairs = zip(intervals, halves, strict=True)
        intervals = _Intervals(
            *(np.concatenate([np.delete(old, worst, axis=0), half]) for old, half in pairs)
        )
    weights, change = intervals.weights, float(score - baseline)
    size, spread = np.abs(weights).sum(), np.abs(intervals.spread.sum(0)).sum()
    return Gradients(
        weights,
        float(score),
        float(baseline),
        error=abs(float(weights.sum()) - change) / abs(change) if change else None,
        spread=float(spread / size) if size else 0.0,
        intervals=len(intervals.ends),
        correlations=correlations(prediction.outputs[side], weights),
    )


def _measured(
    scores: Callable[[Doubles], Steps[Doubles]], ends: Doubles, length: int
) -> Steps[_Intervals]:
    """The intervals with these ends (N, 2), for a sentence of `length` tokens."""
    start, width = ends[:, :1, None], np.diff(ends)[:, :, None]
    moved = np.tri(length + 1, length, -1)  # row k: the first k tokens have moved
    forward = start + width * moved  # (N, L + 1, L)
    backward = start + width * moved[1:-1, ::-1]  # its ends are those of `forward`
    steps = np.concatenate([forward, backward], axis=1).reshape(-1, length)
    values = (yield from scores(steps)).reshape(len(ends), -1)
    forward_values, inner = values[:, : length + 1], values[:, length + 1 :]
    backward_values = np.concatenate([forward_values[:, :1], inner, forward_values[:, -1:]], axis=1)
    return _Intervals(ends, np.diff(forward_values), np.diff(backward_values)[:, ::-1])


def _worst(intervals: _Intervals) -> Ints:
    """Indices of the intervals of the largest spread: the other spreads sum up to half of the tolerance at most."""
    spread, size = np.abs(intervals.spread).sum(1), np.abs(intervals.weights).sum()
    if spread.sum() <= TOLERANCE * size:
        return np.empty(0, np.int64)
    order = np.argsort(spread, kind="stable")
    first = int(np.searchsorted(spread[order].cumsum(), TOLERANCE * size / 2, side="right"))
    return order[first:][::-1]

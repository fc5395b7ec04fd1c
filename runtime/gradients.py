"""Integrated gradients of the predicted score (Sundararajan et al. 2017, equation 1), one weight per token.

The path leads from a zero vector in the place of every word to the words' vectors; tokens, tree and positions
stay. It is cut into intervals. In each, the derivative by a token is the difference of two runs, with this
token's vector at the end and at the start of the interval and the others' in its middle: an error of the third
order in its width. What the tokens of an interval leave of the score's change along it is therefore known, and
an interval that leaves too much is halved.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from heedful.runtime.correlation import Correlation, correlations
from heedful.runtime.errors import BadInput
from heedful.runtime.explain_run import Prediction, Scores
from heedful.text.batch import Sentence

Indices = npt.NDArray[np.int64]

MAX_GRADIENT_TOKENS = 48
"""Longest sentence: an interval costs two runs of it for each token."""
INTERVALS, MAX_INTERVALS = 8, 256
"""At first, and at most."""
TOLERANCE = 0.05
"""Of the score's change along the path: what all intervals together may leave of it."""


@dataclass(frozen=True, slots=True)
class Gradients:
    """`weights` (L,) sum to `score` - `baseline`, but for `error`."""

    weights: Scores
    score: float  # of the sentence
    baseline: float  # the score with a zero vector for every word
    error: float | None  # of the sum, relative to score - baseline; None where these are equal
    intervals: int
    correlations: list[Correlation]


@dataclass(slots=True)
class _Intervals:
    """N intervals of the path, from 0 to 1, the score at both of their ends, and each token's share of its change."""

    ends: Scores  # (N, 2)
    scores: Scores  # (N, 2)
    shares: Scores  # (N, L)

    @property
    def missing(self) -> Scores:
        """(N,) what the shares leave of the change."""
        left: Scores = np.abs(self.shares.sum(1) - np.diff(self.scores)[:, 0])
        return left

    def __len__(self) -> int:
        return len(self.ends)


class _Path:
    """The predicted score of a sentence whose word vectors are scaled."""

    def __init__(self, prediction: Prediction, side: int, sentence: Sentence) -> None:
        self._prediction, self._side, self.sentence = prediction, side, sentence

    async def scores(self, places: Scores) -> Scores:
        """(N,) at places on the path, (N,) for all tokens alike or (N, L)."""
        rows = places if places.ndim == 2 else np.repeat(places[:, None], len(self.sentence), 1)
        vectors = await self._prediction.run.scaled(self.sentence, rows.astype(np.float32))
        return await self._prediction.of(self._side, vectors)

    async def intervals(self, ends: Scores, scores: Scores) -> _Intervals:
        """With the shares of the intervals with these ends, and scores at them, (N, 2)."""
        length = len(self.sentence)
        middle = ends.mean(1)[:, None, None]
        half = np.diff(ends)[:, :, None] / 2 * np.eye(length)
        moved = [(middle + sign * half).reshape(-1, length) for sign in (1, -1)]
        after, before = np.split(await self.scores(np.concatenate(moved)), 2)
        return _Intervals(ends, scores, (after - before).reshape(-1, length))

    async def halved(self, intervals: _Intervals, chosen: Indices) -> _Intervals:
        """The intervals, those at the indices `chosen` (M,) halved."""
        ends, scores = intervals.ends[chosen], intervals.scores[chosen]
        middle = ends.mean(1)
        between = await self.scores(middle)
        halves = await self.intervals(_split(ends, middle), _split(scores, between))
        return _Intervals(
            *(
                np.concatenate([np.delete(old, chosen, axis=0), new])
                for old, new in (
                    (intervals.ends, halves.ends),
                    (intervals.scores, halves.scores),
                    (intervals.shares, halves.shares),
                )
            )
        )


async def gradients(prediction: Prediction, side: int, sentence: Sentence) -> Gradients:
    """Integrate along the path of sentence `side`. Raises BadInput where the bundle's graph cannot."""
    if not prediction.run.explain_graph.scalable:
        raise BadInput(
            f"{prediction.run.model.card.name} has no gradients: its explain.onnx cannot scale word "
            "vectors; `heedful trust --gradients` adds that, but not to a model of word pieces",
            param="gradients",
            code="no_gradients",
        )
    path = _Path(prediction, side, sentence)
    places = np.linspace(0, 1, INTERVALS + 1)
    scores = await path.scores(places)
    change = float(scores[-1] - scores[0])
    found = await path.intervals(_pairs(places), _pairs(scores))
    while len(worst := _worst(found.missing, abs(change))) and len(found) < MAX_INTERVALS:
        found = await path.halved(found, worst[: MAX_INTERVALS - len(found)])
    weights = found.shares.sum(0)
    error = abs(float(weights.sum()) - change) / abs(change) if change else None
    ranks = correlations(prediction.found[side], weights)
    return Gradients(weights, float(scores[-1]), float(scores[0]), error, len(found), ranks)


def _worst(missing: Scores, change: float) -> Indices:
    """The intervals that miss most: without them, the others miss half of the tolerance at most."""
    if missing.sum() <= TOLERANCE * change:
        return np.empty(0, np.int64)
    order = np.argsort(missing, kind="stable")
    kept = int(np.searchsorted(missing[order].cumsum(), TOLERANCE * change / 2, side="right"))
    return order[kept:][::-1]


def _pairs(values: Scores) -> Scores:
    """(N + 1,) -> (N, 2) neighbours."""
    return np.stack([values[:-1], values[1:]], axis=1)


def _split(pairs: Scores, middle: Scores) -> Scores:
    """(N, 2) -> (2 N, 2): from the first to the middle, from the middle to the second."""
    first, second = pairs.T
    return np.concatenate([np.stack([first, middle], 1), np.stack([middle, second], 1)])

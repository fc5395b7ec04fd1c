"""Signed evidence: the change of the answer when each token is left out, and attention's rank correlation with it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from heedful.runtime.explain_graph import ExplainOutputs, Floats
from heedful.runtime.explain_run import Prediction, Scores
from heedful.text.parse import Parse
from heedful.text.trees import drop


@dataclass(frozen=True, slots=True)
class Correlation:
    """Spearman's rank correlation of one weight per token with the size of the evidence."""

    kind: str  # "maps", "pooling" or "gate"
    name: str
    value: float | None  # None where one of the two is constant


@dataclass(frozen=True, slots=True)
class Evidence:
    weights: Scores  # (L,) the score with the whole sentence, minus that without the token
    correlations: list[Correlation]


async def evidence(prediction: Prediction, parses: Sequence[Parse], side: int) -> Evidence | None:
    """Leave out each token of sentence `side`, in one batch. None for a sentence of one token."""
    parse = parses[side]
    if len(parse) == 1:
        return None
    sentence = prediction.run.model.sentence
    weights = await prediction.drops(side, [sentence(drop(parse, [i])) for i in range(len(parse))])
    correlations = [
        Correlation(kind, name, rank_correlation(per_token, np.abs(weights)))
        for kind, name, per_token in _weights(prediction.found[side])
    ]
    return Evidence(weights, correlations)


def _weights(found: ExplainOutputs) -> Iterator[tuple[str, str, Floats]]:
    """Kind, name and a weight per token: of a map, how much all tokens take from each, on average."""
    for name, attention in found.maps.items():
        yield "maps", name, attention[0].mean(0)
    for name, weights in found.pooling.items():
        yield "pooling", name, weights[0]
    for name, weights in found.gate.items():
        yield "gate", name, weights[0]


def rank_correlation(first: Scores | Floats, second: Scores | Floats) -> float | None:
    """Spearman's correlation of two arrays (N,), equal values at their mean rank; None if one is constant."""
    a, b = (_ranks(values) - (len(values) - 1) / 2 for values in (first, second))
    scale = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / scale if scale else None


def _ranks(values: Scores | Floats) -> Scores:
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: Scores = (last - (counts + 1) / 2)[places]
    return ranks

"""How attention ranks a sentence's tokens, compared with the size of their evidence."""

from dataclasses import dataclass

import numpy as np

from heedful.runtime.explain.graph import ExplainOutputs
from heedful.text.arrays import Doubles, Floats


@dataclass(frozen=True, slots=True)
class Correlation:
    """Spearman's rank correlation of the tokens' weights with the size of the evidence."""

    kind: str  # "maps", "pooling" or "gate"
    name: str
    value: float | None  # None where the weights or the evidence are constant


def correlations(outputs: ExplainOutputs, evidence: Doubles) -> list[Correlation]:
    """The correlation of each map, pooling and gate of a sentence with its evidence (L,), which may be signed.

    A map's weight of a token is the mean over all tokens of what they take from it.
    """
    size = np.abs(evidence)
    return [
        Correlation(
            kind, name, rank_correlation(weights.mean(0) if kind == "maps" else weights, size)
        )
        for kind in ("maps", "pooling", "gate")
        for name, (weights, *_) in getattr(outputs, kind).items()
    ]


def rank_correlation(first: Doubles | Floats, second: Doubles | Floats) -> float | None:
    """Spearman's correlation of two arrays (N,), equal values at their mean rank; None if an array is constant."""
    a, b = (_ranks(values) - (len(values) - 1) / 2 for values in (first, second))
    scale = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / scale if scale else None


def _ranks(values: Doubles | Floats) -> Doubles:
    above = values[:, None] > values
    ties = values[:, None] == values
    ranks: Doubles = above.sum(1) + (ties.sum(1) - 1) / 2
    return ranks

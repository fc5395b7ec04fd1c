"""The head over two sentences' aligned words (Parikh et al. 2016) as loops: one pair, no padding."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from tests.reference.arithmetic import Array, each, mean, relu, softmax, weighted

Layer = Callable[[Array], Array]


def compared(
    words: Sequence[Array], others: Sequence[Array], scores: Array, compare: Layer
) -> Array:
    """The mean and the maximum of the words (L, D), each compared with what it aligns to; scores (L, L')."""
    found = []
    for word, row in zip(words, scores, strict=True):
        aligned = weighted(others, softmax(row.tolist()))
        features = np.concatenate([word, aligned, word - aligned, word * aligned])
        found.append(each(relu, compare(features)))
    return np.concatenate([mean(found), np.max(found, axis=0)])


def features(
    first: Sequence[Array], second: Sequence[Array], attend: Layer, compare: Layer
) -> Array:
    """What the last layers read of a premise's words (L, D) and a hypothesis' (L', D)."""
    scores = np.array(
        [[attend(one) @ attend(other) / math.sqrt(len(one)) for other in second] for one in first]
    )
    return np.concatenate(
        [compared(first, second, scores, compare), compared(second, first, scores.T, compare)]
    )


def product(first: Array, second: Array, share: float) -> Array:
    """The probabilities of a product of two experts, given their logits: p^(1 - share) q^share, normalised."""
    each = zip(softmax(first.tolist()), softmax(second.tolist()), strict=True)
    found: Array = np.array([p ** (1 - share) * q**share for p, q in each])
    return np.asarray(found / found.sum())

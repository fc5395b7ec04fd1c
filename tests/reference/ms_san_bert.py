"""MS-SAN+BERT (Qi et al. 2020) as loops, from a transformer's piece vectors on: one sentence, no padding."""

from collections.abc import Sequence

import numpy as np

from tests.reference.arithmetic import Array, layer_norm
from tests.reference.ms_san import (
    Priors,
    Weights,
    attention,
    attentive_pooling,
    feed_forward,
    fusion_gate,
)


def word_vectors(hidden: Array, pieces: Sequence[int]) -> Array:
    """Vectors of [CLS], the pieces and [SEP] (S, D) -> the mean of each word's pieces (L, D)."""
    words = []
    position = 1
    for count in pieces:
        total = np.zeros(hidden.shape[1])
        for _ in range(count):
            total += hidden[position]
            position += 1
        words.append(total / count)
    assert position == len(hidden) - 1
    return np.stack(words)


def encode(
    hidden: Array,
    pieces: Sequence[int],
    weights: Weights,
    heads: Sequence[int],
    count: int,
    priors: Priors,
    alpha: float,
) -> Array:
    """(S, D) -> sentence vector (2 D,): attentive pooling, and [CLS] where MS-SAN has max pooling."""
    x = word_vectors(hidden, pieces)
    attended, _ = attention(x, weights, heads, count, priors, alpha)
    tokens = []
    for i, o in zip(x, attended, strict=True):
        u = fusion_gate(i, o, weights)
        u = layer_norm(u + feed_forward(u, weights.feed_forward), weights.gain, weights.shift)
        tokens.append(u)
    pooled = attentive_pooling(np.stack(tokens), lambda token: feed_forward(token, weights.pooling))
    return np.concatenate([pooled, hidden[0]])

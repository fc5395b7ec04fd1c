"""LAMA (Mehta et al. 2019) and its baselines as loops: one document, one head, one word at a time.

Equation numbers are the paper's; docs/models.md decides where it is silent. No batch, no padding.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tests.reference.arithmetic import (
    Array,
    Layers,
    each,
    layer_norm,
    mean,
    multi_head,
    perceptron,
    sigmoid,
    sinusoid,
    softmax,
    weighted,
)


@dataclass(frozen=True)
class GRU:
    """Eq. (3.1)-(3.4). `b_x` is one bias more than the paper prints, added to W_h x."""

    w_z: Array
    u_z: Array
    b_z: Array
    w_r: Array
    u_r: Array
    b_r: Array
    w_h: Array
    b_x: Array
    u_h: Array
    b_h: Array


def gru(x: Sequence[Array], weights: GRU) -> list[Array]:
    """The states after each word, from a state of zeros."""
    h = np.zeros_like(weights.b_z)
    states = []
    for word in x:
        z = each(sigmoid, weights.w_z @ word + weights.u_z @ h + weights.b_z)
        r = each(sigmoid, weights.w_r @ word + weights.u_r @ h + weights.b_r)
        new = np.tanh(weights.w_h @ word + weights.b_x + r * (weights.u_h @ h + weights.b_h))
        h = (1 - z) * h + z * new
        states.append(h)
    return states


def bi_gru(x: Sequence[Array], ahead: GRU, back: GRU) -> list[Array]:
    """Eq. (3.5)-(3.6): each word's annotation."""
    forwards = gru(x, ahead)
    backwards = gru(list(reversed(x)), back)[::-1]
    return [np.concatenate(pair) for pair in zip(forwards, backwards, strict=True)]


def attention(
    h: Sequence[Array], c: Array, w_w: Array, b_w: Array, p: Array, q: Array
) -> list[list[float]]:
    """Weights [head][word]; p (m, k, |c|) and q (m, k, 2h) hold the factors of each head's W_i.

    Each score is c^T W_i u, W_i the sum of k outer products: eq. (3.8) with (3.10), spelled out.
    """
    table = []  # [word][head]
    for annotation in h:
        u = np.tanh(w_w @ annotation + b_w)
        f = []
        for p_i, q_i in zip(p, q, strict=True):
            w_i = np.zeros((len(c), len(u)))
            for left, right in zip(p_i, q_i, strict=True):
                w_i += np.outer(left, right)
            f.append(math.tanh(float(c @ w_i @ u)))
        length = math.sqrt(sum(value * value for value in f))
        table.append([value / length for value in f])
    return [softmax([row[head] for row in table]) for head in range(len(p))]


def structured_attention(h: Sequence[Array], w_1: Array, w_2: Array) -> list[list[float]]:
    """SAN, eq. (3.19): weights [head][word]."""
    table = [w_2 @ np.tanh(w_1 @ annotation) for annotation in h]
    return [softmax([float(row[head]) for row in table]) for head in range(len(w_2))]


def embed(h: Sequence[Array], maps: Sequence[Sequence[float]]) -> Array:
    """Eq. (3.14)-(3.15), flattened row by row."""
    return np.concatenate([weighted(h, shares) for shares in maps])


def cnn_max(x: Sequence[Array], weight: Array, bias: Array) -> Array:
    """One window size of Kim's CNN, weight (maps, D, window): every window that holds a word."""
    maps, dim, window = weight.shape
    zeros = [np.zeros(dim)] * (window - 1)
    padded = [*zeros, *x, *zeros]
    best = np.full(maps, -math.inf)
    for start in range(len(padded) - window + 1):
        for m in range(maps):
            total = float(bias[m])
            for offset in range(window):
                total += float(weight[m, :, offset] @ padded[start + offset])
            best[m] = max(best[m], total, 0.0)
    return best


@dataclass(frozen=True)
class Transformer:
    project: tuple[Array, Array]
    query: Array
    key: Array
    value: Array
    output: Array
    feed_forward: Layers
    norms: Sequence[Sequence[Array]]  # gain and shift of both


def transformer(x: Sequence[Array], weights: Transformer, heads: int) -> Array:
    """One encoder layer, norms after the sums; then the mean over the words."""
    matrix, bias = weights.project
    words = [matrix @ word + bias + sinusoid(i, len(bias)) for i, word in enumerate(x)]
    result = []
    attended, _ = multi_head(words, weights.query, weights.key, weights.value, heads)
    for word, joined in zip(words, attended, strict=True):
        token = layer_norm(word + weights.output @ joined, *weights.norms[0])
        token = token + perceptron(token, weights.feed_forward)
        result.append(layer_norm(token, *weights.norms[1]))
    return mean(result)

"""DiSAN and its baselines (Shen et al. 2018) as loops: one sentence, one token, one feature at a time.

Equation numbers are the paper's; docs/models.md decides where it is silent. No batch, no padding.
Matrices map a column: y = W x.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tests.reference.arithmetic import (
    Array,
    Layers,
    each,
    elu,
    multi_head,
    perceptron,
    sigmoid,
    sinusoid,
    softmax,
)
from tests.reference.ms_san import attentive_pooling


@dataclass(frozen=True)
class Block:
    w_h: Array
    b_h: Array
    w_1: Array
    w_2: Array
    b: Array
    w_f1: Array
    w_f2: Array
    b_f: Array


@dataclass(frozen=True)
class Gates:
    """An LSTM's four gates in the order i, f, o, g, one below the other."""

    w: Array
    b: Array
    u: Array


ALLOWS: dict[str, Callable[[int, int], bool]] = {
    "diag-disabled": lambda i, j: i != j,
    "forward": lambda i, j: i < j,
    "backward": lambda i, j: i > j,
}
"""Eq. (16)-(18): may the reference j attend to i?"""


def token2token(h: Array, block: Block, allows: Callable[[int, int], bool]) -> Array:
    """Eq. (15) and (11) with c = 5: (L, D) -> (L, D)."""
    length, dim = h.shape
    s = np.zeros((length, dim))
    for j in range(length):
        seen = [i for i in range(length) if allows(i, j)]
        for k in range(dim):
            scores = [
                5 * math.tanh(float(block.w_1[k] @ h[i] + block.w_2[k] @ h[j] + block.b[k]) / 5)
                for i in seen
            ]
            if scores:
                shares = softmax(scores)
                s[j, k] = sum(share * h[i, k] for share, i in zip(shares, seen, strict=True))
    return s


def directional(x: Array, block: Block, allows: Callable[[int, int], bool]) -> Array:
    """Eq. (14)-(20): (L, D) -> (L, D)."""
    h = np.stack([each(elu, block.w_h @ token + block.b_h) for token in x])
    s = token2token(h, block, allows)
    tokens = []
    for h_j, s_j in zip(h, s, strict=True):
        f = each(sigmoid, block.w_f1 @ s_j + block.w_f2 @ h_j + block.b_f)
        tokens.append(f * h_j + (1 - f) * s_j)
    return np.stack(tokens)


def pooled(u: Array, score: Layers) -> Array:
    """Eq. (12)-(13); additive attention has one score for all features."""
    return attentive_pooling(u, lambda token: perceptron(token, score, elu))


def disan(x: Array, blocks: tuple[Block, Block], score: Layers, *, direction: bool) -> Array:
    """Figure 4: word vectors (L, D) -> sentence vector (2 D,)."""
    masks = ("forward", "backward") if direction else ("diag-disabled", "diag-disabled")
    sides = [directional(x, one, ALLOWS[mask]) for one, mask in zip(blocks, masks, strict=True)]
    return pooled(np.concatenate(sides, axis=1), score)


def multi_head_s2t(
    x: Array, query: Array, key: Array, value: Array, score: Layers, *, heads: int
) -> Array:
    placed = [token + sinusoid(place, x.shape[1]) for place, token in enumerate(x)]
    joined, _ = multi_head(placed, query, key, value, heads)
    return pooled(np.stack(joined), score)


def lstm(x: Array, gates: Gates) -> Array:
    """(L, D) -> (L, D), in the order of x."""
    dim = len(gates.b) // 4
    h, c = np.zeros(dim), np.zeros(dim)
    outputs = []
    for token in x:
        i, f, o, g = np.split(gates.w @ token + gates.u @ h + gates.b, 4)
        c = each(sigmoid, f) * c + each(sigmoid, i) * each(math.tanh, g)
        h = each(sigmoid, o) * each(math.tanh, c)
        outputs.append(h)
    return np.stack(outputs)


def bi_lstm(x: Array, forward: Gates, backward: Gates, score: Layers) -> Array:
    u = np.concatenate([lstm(x, forward), lstm(x[::-1], backward)[::-1]], axis=1)
    return pooled(u, score)

"""DiSAN and its baselines (Shen et al. 2018) as loops: one sentence, one token, one feature at a time.

Equation numbers are the paper's; docs/models.md decides where it is silent. No batch, no padding.
Matrices map a column: y = W x.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tests.reference.arithmetic import Array, sinusoid, softmax


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
class Score:
    """Eq. (12); additive attention has one row in `w` and no `b`."""

    w_1: Array
    b_1: Array
    w: Array
    b: Array


@dataclass(frozen=True)
class Gates:
    """An LSTM's four gates in the order i, f, o, g, one below the other."""

    w: Array
    b: Array
    u: Array


def forward_allows(i: int, j: int) -> bool:
    """Eq. (17): may the reference j attend to i?"""
    return i < j


def backward_allows(i: int, j: int) -> bool:
    """Eq. (18)."""
    return i > j


def diag_disabled_allows(i: int, j: int) -> bool:
    """Eq. (16)."""
    return i != j


def elu(value: float) -> float:
    return value if value > 0 else math.expm1(value)


def sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))


def each(function: Callable[[float], float], vector: Array) -> Array:
    return np.array([function(float(value)) for value in vector])


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


def pooled(u: Array, score: Score) -> Array:
    """Eq. (12)-(13): a softmax over the tokens for each feature; with one score, for all of them."""
    scores = [score.w @ each(elu, score.w_1 @ token + score.b_1) + score.b for token in u]
    length, dim = u.shape
    sentence = np.zeros(dim)
    for k in range(dim):
        shares = softmax([float(values[k % len(values)]) for values in scores])
        sentence[k] = sum(shares[i] * u[i, k] for i in range(length))
    return sentence


def disan(x: Array, blocks: tuple[Block, Block], score: Score, *, direction: bool) -> Array:
    """Figure 4: word vectors (L, D) -> sentence vector (2 D,)."""
    first, second = (
        (forward_allows, backward_allows)
        if direction
        else (diag_disabled_allows, diag_disabled_allows)
    )
    forward, backward = directional(x, blocks[0], first), directional(x, blocks[1], second)
    return pooled(np.concatenate([forward, backward], axis=1), score)


def multi_head(
    x: Array, query: Array, key: Array, value: Array, score: Score, *, heads: int
) -> Array:
    x = np.stack([token + sinusoid(place, x.shape[1]) for place, token in enumerate(x)])
    length, size = len(x), len(query) // heads
    u = np.zeros((length, len(query)))
    for head in range(heads):
        rows = slice(head * size, (head + 1) * size)
        for q in range(length):
            scores = [
                float((query[rows] @ x[q]) @ (key[rows] @ x[k])) / math.sqrt(size)
                for k in range(length)
            ]
            for k, share in enumerate(softmax(scores)):
                u[q, rows] += share * (value[rows] @ x[k])
    return pooled(u, score)


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


def bi_lstm(x: Array, forward: Gates, backward: Gates, score: Score) -> Array:
    u = np.concatenate([lstm(x, forward), lstm(x[::-1], backward)[::-1]], axis=1)
    return pooled(u, score)


def head(features: Array, layers: list[tuple[Array, Array]]) -> Array:
    """One ELU layer and one linear one."""
    (w_1, b_1), (w_2, b_2) = layers
    logits: Array = w_2 @ each(elu, w_1 @ features + b_1) + b_2
    return logits


def nli_head(p: Array, h: Array, layers: list[tuple[Array, Array]]) -> Array:
    """[p; h; p - h; p * h] (section 5.1)."""
    return head(np.concatenate([p, h, p - h, p * h]), layers)

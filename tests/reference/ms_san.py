"""MS-SAN (Qi et al. 2020) as loops: one sentence, one head, one pair of tokens at a time.

Equation numbers are the paper's; docs/models.md decides where it is silent. No batch, no padding.
"""

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tests.reference.arithmetic import (
    NONE,
    Array,
    Layers,
    Positions,
    each,
    layer_norm,
    mean,
    multi_head,
    perceptron,
    sigmoid,
    softmax,
)


@dataclass(frozen=True)
class Weights:
    """Matrices map a column: y = W x."""

    query: Array
    key: Array
    value: Array
    output: Array
    w_i: Array
    w_o: Array
    w_1: Array
    w_2: Array
    b: Array
    feed_forward: Layers
    gain: Array
    shift: Array
    pooling: Layers


@dataclass(frozen=True)
class Priors:
    """`direction` names the one of all heads, or is true: forward in the first half, then backward."""

    direction: bool | str
    word: bool
    dependency: bool


def forward_allows(q: int, k: int) -> bool:
    """Eq. (3) as the text has it: what stands after the reference word q is ignored."""
    return not k > q


def backward_allows(q: int, k: int) -> bool:
    """Eq. (4) as the text has it."""
    return not k < q


def dependency_distances(heads: Sequence[int]) -> list[list[int]]:
    """Edges from each token to each other one: breadth-first over the undirected tree.

    All roots hang under one virtual root, the node after the last token.
    """
    length = len(heads)
    neighbours: list[list[int]] = [[] for _ in range(length + 1)]
    for token, head in enumerate(heads):
        above = length if head == token else int(head)
        neighbours[token].append(above)
        neighbours[above].append(token)
    table = []
    for start in range(length):
        edges = {start: 0}
        queue = deque([start])
        while queue:
            node = queue.popleft()
            for other in neighbours[node]:
                if other not in edges:
                    edges[other] = edges[node] + 1
                    queue.append(other)
        table.append([edges[end] for end in range(length)])
    return table


def masks(
    heads: Sequence[int], count: int, priors: Priors, alpha: float
) -> list[list[list[float]]]:
    """Eq. (6), for each of `count` attention heads: M[q][k]."""
    length, half = len(heads), count // 2
    tree = dependency_distances(heads)
    result = []
    for head in range(count):
        way = priors.direction
        if way is True:
            way = "forward" if head < half else "backward"
        allows = forward_allows if way == "forward" else backward_allows
        kind = ("word", "dependency", "none")[head % half % 3]
        mask = [[0.0] * length for _ in range(length)]
        for q in range(length):
            for k in range(length):
                if priors.direction and not allows(q, k):
                    mask[q][k] = -math.inf
                elif kind == "word" and priors.word:
                    mask[q][k] = -alpha * abs(q - k)  # eq. (5)
                elif kind == "dependency" and priors.dependency:
                    mask[q][k] = -alpha * tree[q][k]
        result.append(mask)
    return result


def attention(
    x: Array,
    weights: Weights,
    heads: Sequence[int],
    count: int,
    priors: Priors,
    alpha: float,
    positions: Positions = NONE,
) -> tuple[Array, list[list[list[float]]]]:
    """Eq. (1)-(2): tokens (L, D) -> (L, D) and the attention weights [head][q][k]."""
    priors_of_heads = masks(heads, count, priors, alpha)
    projections = weights.query, weights.key, weights.value
    joined, maps = multi_head(list(x), *projections, count, positions, priors_of_heads)
    return np.stack([weights.output @ token for token in joined]), maps


def fusion_gate(i: Array, o: Array, weights: Weights) -> Array:
    """Eq. (7)-(9) for one token."""
    i, o = weights.w_i @ i, weights.w_o @ o
    f = each(sigmoid, weights.w_1 @ i + weights.w_2 @ o + weights.b)
    return f * i + (1 - f) * o


def attentive_pooling(u: Array, score: Callable[[Array], Array]) -> Array:
    """Eq. (11): a softmax over the tokens for each feature, or for all, where there is one score; then the sum."""
    scores = [score(token) for token in u]
    pooled = []
    for feature, values in enumerate(u.T):
        shares = softmax([float(each[feature % len(each)]) for each in scores])
        pooled.append(sum(share * value for share, value in zip(shares, values, strict=True)))
    return np.array(pooled)


def tokens(
    x: Array,
    weights: Weights,
    heads: Sequence[int],
    count: int,
    priors: Priors,
    alpha: float,
    positions: Positions = NONE,
) -> Array:
    """Figure 1 below the poolings: (L, D) -> (L, D); eq. (10), delta = ReLU, between the gate and the norm."""
    attended, _ = attention(x, weights, heads, count, priors, alpha, positions)
    found = []
    for i, o in zip(x, attended, strict=True):
        u = fusion_gate(i, o, weights)
        u = u + perceptron(u, weights.feed_forward)
        found.append(layer_norm(u, weights.gain, weights.shift))
    return np.stack(found)


def encode(u: Array, weights: Weights, other: Array | None = None) -> Array:
    """Tokens (L, D) -> sentence vector (2 D,): attentive pooling, then max pooling or what takes its place."""
    attentive = attentive_pooling(u, lambda token: perceptron(token, weights.pooling))
    other = np.array([max(column) for column in u.T]) if other is None else other
    return np.concatenate([attentive, other])


def word_vectors(hidden: Array, pieces: Sequence[int]) -> Array:
    """MS-SAN+BERT: vectors of [CLS], the pieces and [SEP] (S, D) -> the mean of each word's pieces (L, D)."""
    words = []
    position = 1
    for count in pieces:
        words.append(mean(list(hidden[position : position + count])))
        position += count
    assert position == len(hidden) - 1
    return np.stack(words)

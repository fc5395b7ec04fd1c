"""What several of the papers' equations share, as loops in numpy: activations, layers, attention, norms, sinusoids."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Function = Callable[[float], float]
Layers = Sequence[tuple[Array, Array]]
"""Weight and bias of each; a matrix maps a column: y = W x."""


def relu(value: float) -> float:
    return max(0.0, value)


def elu(value: float) -> float:
    return value if value > 0 else math.expm1(value)


def sigmoid(value: float) -> float:
    """1 / (1 + exp(-value)), which would overflow."""
    return (1 + math.tanh(value / 2)) / 2


def each(function: Function, vector: Array) -> Array:
    return np.array([function(float(value)) for value in vector])


def perceptron(features: Array, layers: Layers, activation: Function = relu) -> Array:
    """Linear layers with the activation between them."""
    for weight, bias in layers[:-1]:
        features = each(activation, weight @ features + bias)
    weight, bias = layers[-1]
    result: Array = weight @ features + bias
    return result


def matching(p: Array, h: Array, difference: Function = abs) -> Array:
    """[p; h; |p - h|; p * h], the papers' parts in the order of docs/models.md; DiSAN's difference has its sign."""
    features = [*p, *h]
    features += [difference(a - b) for a, b in zip(p, h, strict=True)]
    features += [a * b for a, b in zip(p, h, strict=True)]
    return np.array(features)


def softmax(scores: Sequence[float]) -> list[float]:
    top = max(scores)
    powers = [math.exp(score - top) for score in scores]
    return [power / sum(powers) for power in powers]


def weighted(vectors: Sequence[Array], shares: Sequence[float]) -> Array:
    total = np.zeros_like(vectors[0])
    for vector, share in zip(vectors, shares, strict=True):
        total = total + share * vector
    return total


def mean(vectors: Sequence[Array]) -> Array:
    return weighted(vectors, [1 / len(vectors)] * len(vectors))


class Positions:
    """`score` is what stands under the softmax for the query i and the key j, before it is scaled; `value`
    is what i takes from j. i and j count the tokens of the sentence. Both ignore them here, as in Vaswani et al.
    2017, eq. (1).
    """

    def score(self, head: int, query: Array, key: Array, i: int, j: int) -> float:
        return float(query @ key)

    def value(self, head: int, value: Array, i: int, j: int) -> Array:
        return value


NONE = Positions()


def multi_head(
    x: Sequence[Array],
    query: Array,
    key: Array,
    value: Array,
    heads: int,
    positions: Positions = NONE,
    masks: Sequence[Sequence[Sequence[float]]] = (),
) -> tuple[list[Array], list[list[list[float]]]]:
    """Vaswani et al. 2017, eq. (1): each token's attended values, the heads one behind the other; the weights
    [head][q][k]. Masks [head][q][k] are added to the scores.
    """
    size = len(query) // heads
    joined, maps = [np.zeros(len(query)) for _ in x], list[list[list[float]]]()
    for head in range(heads):
        rows = slice(head * size, (head + 1) * size)
        queries, keys, values = ([of[rows] @ token for token in x] for of in (query, key, value))
        maps.append([])
        for q, asked in enumerate(queries):
            scores = []
            for k, other in enumerate(keys):
                score = positions.score(head, asked, other, q, k) / math.sqrt(size)
                scores.append(score + masks[head][q][k] if masks else score)
            maps[head].append(softmax(scores))
            taken = [positions.value(head, other, q, k) for k, other in enumerate(values)]
            joined[q][rows] = weighted(taken, maps[head][q])
    return joined, maps


def layer_norm(token: Array, gain: Array, shift: Array) -> Array:
    average = sum(token) / len(token)
    variance = sum((value - average) ** 2 for value in token) / len(token)
    return (token - average) / math.sqrt(variance + 1e-5) * gain + shift


def sinusoid(position: int, dim: int) -> Array:
    """Vaswani et al. 2017, section 3.5: (dim,)."""
    features = []
    for feature in range(dim):
        angle = position / 10_000 ** ((feature - feature % 2) / dim)
        features.append(math.cos(angle) if feature % 2 else math.sin(angle))
    return np.array(features)

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


def multi_head(
    x: Sequence[Array], query: Array, key: Array, value: Array, heads: int
) -> list[Array]:
    """Vaswani et al. 2017, eq. (1): each token's attended values, the heads one behind the other."""
    size = len(query) // heads
    joined = [np.zeros(len(query)) for _ in x]
    for head in range(heads):
        rows = slice(head * size, (head + 1) * size)
        values = [value[rows] @ token for token in x]
        for q, token in enumerate(x):
            asked = query[rows] @ token
            scores = [float(asked @ (key[rows] @ other)) / math.sqrt(size) for other in x]
            joined[q][rows] = weighted(values, softmax(scores))
    return joined


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

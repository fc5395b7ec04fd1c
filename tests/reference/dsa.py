"""DSA (Yoon, Lee and Lee 2018) as loops: one sentence, one attention, one word at a time.

Equation numbers are the paper's; docs/models.md decides where it is silent. No batch, no padding, no
dropout: what the encoder is when it does not train.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tests.reference.arithmetic import Array, Layers, each, softmax, weighted


@dataclass(frozen=True)
class Weights:
    """`blocks`: for each kernel size the convolutions in turn, weights (outputs, inputs, kernel).

    `projection`: W_j, b_j of each attention.
    """

    blocks: Sequence[Layers]
    compression: tuple[Array, Array]
    projection: Layers


def leaky_relu(value: float) -> float:
    return value if value > 0 else 0.01 * value


def layer(tokens: Sequence[Array], convolution: tuple[Array, Array]) -> list[Array]:
    """h: at each token the window around it, zeros beyond the sentence; then LeakyReLU."""
    weight, bias = convolution
    outputs, _, kernel = weight.shape
    result = []
    for centre in range(len(tokens)):
        token = np.zeros(outputs)
        for output in range(outputs):
            total = float(bias[output])
            for offset in range(kernel):
                place = centre + offset - kernel // 2
                if 0 <= place < len(tokens):
                    total += float(weight[output, :, offset] @ tokens[place])
            token[output] = leaky_relu(total)
        result.append(token)
    return result


def dense(x: Sequence[Array], layers: Layers) -> list[Array]:
    """Eq. (2)-(4): the concatenation of all layers, the latest first."""
    outputs = [layer(x, layers[0])]  # X^1, X^2 ...
    for convolution in layers[1:]:
        joined = [np.concatenate([out[i] for out in reversed(outputs)]) for i in range(len(x))]
        outputs.append(layer(joined, convolution))
    return [np.concatenate([out[i] for out in reversed(outputs)]) for i in range(len(x))]


def cnn(x: Sequence[Array], weights: Weights) -> list[Array]:
    """Section 3.1: tokens -> compact vectors of unit length."""
    phis = [dense(x, layers) for layers in weights.blocks]
    joined = [np.concatenate([*(phi[i] for phi in phis), x[i]]) for i in range(len(x))]
    return [
        token / math.sqrt(sum(value * value for value in token))
        for token in layer(joined, weights.compression)
    ]


def project(tokens: Sequence[Array], matrix: Array, bias: Array) -> list[Array]:
    """Eq. (6) for one attention."""
    return [each(leaky_relu, matrix @ token + bias) for token in tokens]


def dynamic_attention(words: Sequence[Array], iterations: int) -> tuple[Array, list[float]]:
    """Algorithm 1 for one attention: z and the weights that made it."""
    q = [0.0] * len(words)
    for _ in range(iterations):
        shares = softmax(q)
        z = each(math.tanh, weighted(words, shares))
        for i, word in enumerate(words):
            q[i] += float(word @ z)
    return z, shares


def encode(x: Sequence[Array], weights: Weights, iterations: int) -> Array:
    """Eq. (7): word vectors (L, D) -> sentence vector (m d_o,)."""
    tokens = cnn(x, weights)
    return np.concatenate(
        [
            dynamic_attention(project(tokens, matrix, bias), iterations)[0]
            for matrix, bias in weights.projection
        ]
    )


def static_encode(x: Sequence[Array], weights: Weights, score: Array, vector: Array) -> Array:
    """Eq. (1), softmax(v^T tanh(W X)), over the words of eq. (6); score is W, vector v."""
    ((matrix, bias),) = weights.projection
    words = project(cnn(x, weights), matrix, bias)
    return weighted(words, softmax([float(vector @ np.tanh(score @ word)) for word in words]))


@dataclass(frozen=True)
class Norm:
    """What batch norm kept of the batches, and its weights."""

    mean: Array
    variance: Array
    gain: Array
    shift: Array


def head(features: Array, norms: Sequence[Norm], layers: Layers) -> Array:
    """The classifier of the appendix: features of a sentence or pair -> logits; a norm before each hidden layer."""
    *hidden, (last, offset) = layers
    for norm, (weight, bias) in zip(norms, hidden, strict=True):
        normal = (features - norm.mean) / np.sqrt(norm.variance + 1e-5) * norm.gain + norm.shift
        features = each(leaky_relu, weight @ normal + bias)
    logits: Array = last @ features + offset
    return logits

"""What several of the papers' equations share, as loops in numpy: softmax, layer norm, sinusoids."""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def softmax(scores: Sequence[float]) -> list[float]:
    top = max(scores)
    powers = [math.exp(score - top) for score in scores]
    return [power / sum(powers) for power in powers]


def layer_norm(token: Array, gain: Array, shift: Array) -> Array:
    mean = sum(token) / len(token)
    variance = sum((value - mean) ** 2 for value in token) / len(token)
    return (token - mean) / math.sqrt(variance + 1e-5) * gain + shift


def sinusoid(position: int, dim: int) -> Array:
    """Vaswani et al. 2017, section 3.5: (dim,)."""
    features = []
    for feature in range(dim):
        angle = position / 10_000 ** ((feature - feature % 2) / dim)
        features.append(math.cos(angle) if feature % 2 else math.sin(angle))
    return np.array(features)

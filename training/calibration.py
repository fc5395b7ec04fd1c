"""Probabilities that are as often right as they say: temperature scaling (Guo et al. 2017)."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

Numbers = npt.NDArray[Any]
LIMITS = (0.05, 20.0)
"""Between these the temperature is sought."""


def fit_temperature(logits: Numbers, labels: Numbers) -> float:
    """The number by which to divide logits (N, C) so that the right classes (N,) are likeliest."""
    rows, classes = np.arange(len(labels)), labels.astype(int)

    def loss(temperature: float) -> float:
        return -float(log_softmax(logits / temperature, axis=1)[rows, classes].mean())

    return round(best_temperature(loss, LIMITS), 4)


def best_temperature(loss: Callable[[float], float], limits: tuple[float, float]) -> float:
    """The temperature between `limits` of the lowest loss."""
    found = minimize_scalar(
        lambda power: loss(float(np.exp(power))), bounds=np.log(limits), method="bounded"
    )
    return float(np.exp(found.x))

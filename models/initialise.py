"""Initial weights where a paper specifies them."""

import math

import torch
from torch import nn

SLOPE = 0.01
"""LeakyReLU's slope below zero, torch's default: the papers name none."""


@torch.no_grad()
def he(layer: nn.Linear | nn.Conv1d, dropout: float = 0.0) -> None:
    """He initialisation for LeakyReLU, times sqrt(1 - dropout), and zero biases, in place.

    DSA's appendix multiplies by the root of "the dropout rate of its layer". We read this as the keep rate,
    which preserves the variance because dropout scales up the values that it keeps.
    """
    nn.init.kaiming_normal_(layer.weight, a=SLOPE, nonlinearity="leaky_relu")
    layer.weight.mul_(math.sqrt(1 - dropout))
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)

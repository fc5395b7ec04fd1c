"""How weights begin where a paper says so."""

import math

import torch
from torch import nn

SLOPE = 0.01
"""Of LeakyReLU below zero, torch's default: the papers name none."""


@torch.no_grad()
def he(layer: nn.Linear | nn.Conv1d, dropout: float = 0.0) -> None:
    """He initialisation for LeakyReLU, times sqrt(1 - dropout), and zero biases, in place.

    DSA's appendix multiplies by the root of "the dropout rate of its layer". Read as the share that
    is kept it holds the variance where dropout scales up what it keeps; so it is read here.
    """
    nn.init.kaiming_normal_(layer.weight, a=SLOPE, nonlinearity="leaky_relu")
    layer.weight.mul_(math.sqrt(1 - dropout))
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)

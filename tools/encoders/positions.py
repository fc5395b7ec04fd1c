"""Sinusoidal positions."""

import math

import torch
from torch import Tensor


def sinusoids(position: Tensor, dim: int) -> Tensor:
    """Positions (N,) float, negative ones too -> (N, `dim`), dim even (Vaswani et al. 2017, section 3.5).

    PE(pos, 2i) = sin(pos / 10000^(2i/dim)), PE(pos, 2i+1) = cos of the same.
    """
    feature = torch.arange(0, dim, 2, device=position.device, dtype=position.dtype)
    angle = position[:, None] * torch.exp(-math.log(10_000) / dim * feature)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)


def add_positions(x: Tensor) -> Tensor:
    """x (B, L, D), D even -> x plus the sinusoids of the positions from 0."""
    position = torch.arange(x.shape[1], device=x.device, dtype=x.dtype)
    return x + sinusoids(position, x.shape[2])

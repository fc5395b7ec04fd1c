"""Where a token stands, as features."""

import math

import torch
from torch import Tensor


def sinusoids(x: Tensor) -> Tensor:
    """Positions for x (B, L, D), D even: (L, D), of its type (Vaswani et al. 2017, section 3.5).

    PE(pos, 2i) = sin(pos / 10000^(2i/D)), PE(pos, 2i+1) = cos of the same.
    """
    position = torch.arange(x.shape[1], device=x.device, dtype=x.dtype)
    feature = torch.arange(0, x.shape[2], 2, device=x.device, dtype=x.dtype)
    angle = position[:, None] * torch.exp(-math.log(10_000) / x.shape[2] * feature)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)

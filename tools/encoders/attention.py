"""Multi-head attention (Vaswani et al. 2017), with which two papers compare their encoders."""

import math

import torch
from torch import Tensor


def multi_head(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor, num_heads: int
) -> tuple[Tensor, Tensor]:
    """Scaled dot-product attention of each head, their values side by side (section 3.2.2).

    q, k, v (B, L, S) of which each head takes S / H, mask (B, L) -> (B, L, S) and weights (B, H, L, L).
    """
    q, k, v = (each.unflatten(-1, (num_heads, -1)).transpose(1, 2) for each in (q, k, v))
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])  # (B, H, L, L)
    weights = scores.masked_fill(~mask[:, None, None, :], -torch.inf).softmax(-1)
    return (weights @ v).transpose(1, 2).flatten(2), weights


def head_maps(weights: Tensor) -> dict[str, Tensor]:
    """Weights (B, H, L, L) as the maps of an Explanation."""
    return {f"head {i + 1}": of_head for i, of_head in enumerate(weights.unbind(1))}

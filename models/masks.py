"""Attention masks and the distances between tokens, all computed inside the exported graph."""

import torch
from torch import Tensor


def token_mask(lengths: Tensor, longest: int) -> Tensor:
    """(B,) lengths -> (B, L) boolean: True on tokens, False on padding."""
    return torch.arange(longest, device=lengths.device)[None, :] < lengths[:, None]


def direction(longest: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Forward and backward masks, each (L, L) boolean, allowed[q, k].

    MS-SAN eq. (3)-(4) as the text has them: forward ignores the tokens after the reference (k <= q),
    backward those before it (k >= q). The diagonal is allowed in both.
    """
    position = torch.arange(longest, device=device)
    forward = position[None, :] <= position[:, None]
    return forward, forward.T


def word_distance(longest: int, device: torch.device) -> Tensor:
    """(L, L) float: |q - k|, MS-SAN eq. (5) without its sign."""
    position = torch.arange(longest, device=device, dtype=torch.float32)
    return (position[None, :] - position[:, None]).abs()


def tree_distance(heads: Tensor, rounds: int) -> Tensor:
    """Edges between each two tokens on the dependency tree: heads (B, L) -> (B, L, L) float.

    `heads[b, i]` is the governor of token i, i itself for a root. Several roots hang under one
    virtual root, and a path between two trees counts the edges through it (docs/models.md).

    Pointer doubling: after k rounds `above[i]` marks the 2^k nearest of token i and its
    ancestors, and `up[i]` is the token 2^k steps above it. `rounds` must reach 2^rounds >= the
    deepest chain, so it is taken from the longest sentence allowed, never from a batch: a deeper tree
    would give wrong distances, not an error.
    """
    batch, longest = heads.shape
    # All tokens of the batch in one row: ONNX Runtime copies whole rows faster than elements.
    up = (heads + longest * torch.arange(batch, device=heads.device)[:, None]).flatten()  # (B L,)
    above = torch.eye(longest, device=heads.device).repeat(batch, 1)  # (B L, L)
    for _ in range(rounds):
        above = torch.maximum(above, above.index_select(0, up))
        up = up.index_select(0, up)
    above = above.unflatten(0, (batch, longest))
    depth = above.sum(-1)  # (B, L) edges up to the virtual root
    # (B, L, L) common ancestors, the tokens themselves included.
    shared = above @ above.transpose(1, 2)
    distance: Tensor = depth[:, :, None] + depth[:, None, :] - 2 * shared
    return distance


def doubling_rounds(longest: int) -> int:
    """Rounds of pointer doubling that reach the root of any tree of `longest` tokens."""
    return max(1, (longest - 1).bit_length())

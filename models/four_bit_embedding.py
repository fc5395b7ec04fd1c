"""A word table that is trained in the 4 bits in which a bundle stores it (`heedful export --storage small`)."""

import torch
from torch import Tensor, nn

BLOCK = 32
"""Neighbouring values of a row that share a scale, at most; their number divides the row's length."""


class FourBitEmbedding(nn.Embedding):
    """An embedding layer whose rows are rounded to 4 bits when they are read, with a straight-through gradient.

    So training uses the vectors of serving (Bengio, Leonard and Courville 2013, section 4).
    """

    def forward(self, ids: Tensor) -> Tensor:
        """ids (..) -> (.., D)."""
        rows = super().forward(ids)
        return rounded(rows) + (rows - rows.detach())


def rounded(rows: Tensor) -> Tensor:
    """(.., D) -> the nearest values in 4 bits, by `coded`."""
    codes, steps, least = coded(rows)
    values: Tensor = (codes * steps.float() + least.float()).flatten(-2)
    return values


def coded(rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(.., D) -> codes from 0 to 15 (.., D / b, b), and each block's step and minimum, float16 (.., D / b, 1).

    A block of b neighbouring values has 16 even steps from its minimum to its maximum.
    """
    size = rows.shape[-1]
    block = max(n for n in range(1, BLOCK + 1) if size % n == 0)
    blocks = rows.detach().unflatten(-1, (-1, block))
    least = blocks.amin(-1, keepdim=True).half()
    steps = ((blocks.amax(-1, keepdim=True) - least) / 15).half()
    even = torch.where(steps > 0, steps, 1).float()
    return ((blocks - least) / even).round().clamp(0, 15), steps, least

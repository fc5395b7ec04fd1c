"""A bidirectional GRU that respects padding and exports."""

import torch
from torch import Tensor, nn


class BiGRU(nn.Module):
    """Two one-way GRUs, the backward one from each sentence's own last token.

    The backward one reads the sentence turned round by its length: torch's bidirectional GRU needs
    packed sequences to leave padding out, and those do not export.
    """

    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.ahead = nn.GRU(dim, hidden, batch_first=True)
        self.back = nn.GRU(dim, hidden, batch_first=True)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """x (B, L, D), lengths (B,) -> (B, L, 2 hidden). What stands on padding means nothing."""
        order = reversal(lengths, x.shape[1])
        ahead, _ = self.ahead(x)
        back, _ = self.back(turn(x, order))
        return torch.cat([ahead, turn(back, order)], dim=-1)


def reversal(lengths: Tensor, longest: int) -> Tensor:
    """(B,) lengths -> (B, L): where each token stands in its sentence read backwards.

    Padding stays where it is, so that the order is its own inverse.
    """
    position = torch.arange(longest, device=lengths.device)[None, :]
    last = lengths[:, None] - 1
    return torch.where(position <= last, last - position, position)


def turn(x: Tensor, order: Tensor) -> Tensor:
    """x (B, L, D), order (B, L) -> (B, L, D), token i from place order[i]."""
    batch, longest = order.shape
    # All tokens of the batch in one row: ONNX Runtime copies whole rows faster than elements.
    rows = order + longest * torch.arange(batch, device=order.device)[:, None]
    turned: Tensor = x.flatten(0, 1).index_select(0, rows.flatten()).unflatten(0, (batch, longest))
    return turned

"""Token vectors -> one sentence vector; padding never takes part."""

import torch
from torch import Tensor, nn


class AttentivePooling(nn.Module):
    """Attention over tokens for each feature, sum of softmax(scores) * u.

    MS-SAN eq. (11), DiSAN's source2token.
    `score` maps (B, L, D) -> (B, L, D).
    """

    def __init__(self, score: nn.Module) -> None:
        super().__init__()
        self.score = score

    def forward(self, u: Tensor, mask: Tensor) -> Tensor:
        """u (B, L, D), mask (B, L) boolean -> (B, D)."""
        scores = self.score(u).masked_fill(~mask[:, :, None], -torch.inf)
        pooled: Tensor = (scores.softmax(dim=1) * u).sum(dim=1)
        return pooled


def max_pooling(u: Tensor, mask: Tensor) -> Tensor:
    """u (B, L, D), mask (B, L) boolean -> (B, D), each feature's largest value over the tokens."""
    return u.masked_fill(~mask[:, :, None], -torch.inf).amax(dim=1)


def mean_pooling(u: Tensor, mask: Tensor) -> Tensor:
    """u (B, L, D), mask (B, L) boolean -> (B, D), the mean over the tokens."""
    return u.masked_fill(~mask[:, :, None], 0).sum(dim=1) / mask.sum(dim=1, keepdim=True)

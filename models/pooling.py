"""Token vectors -> one sentence vector, without the padding."""

import torch
from torch import Tensor, nn


class AttentivePooling(nn.Module):
    """Attention over tokens for each feature, sum of softmax(scores) * u.

    MS-SAN eq. (11), DiSAN's source2token. `score` maps (B, L, D) -> (B, L, D).
    """

    def __init__(self, score: nn.Module) -> None:
        super().__init__()
        self.score = score

    def forward(self, u: Tensor, mask: Tensor) -> Tensor:
        """u (B, L, D), mask (B, L) boolean -> (B, D)."""
        return self.attend(u, mask)[0]

    def attend(self, u: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """`forward` with its weights (B, L, D), or (B, L, 1) where the features share one score."""
        scores = self.score(u).masked_fill(~mask[:, :, None], -torch.inf)
        weights = scores.softmax(dim=1)
        return (weights * u).sum(dim=1), weights


class SharedScore(nn.Linear):
    """A linear score of each token that all of its features share: (B, L, D) -> (B, L, D).

    It is repeated for each feature because the operators of an int8 graph weigh features (`export.operators`).
    """

    def __init__(self, dim: int) -> None:
        super().__init__(dim, 1)

    def forward(self, u: Tensor) -> Tensor:
        return super().forward(u).expand_as(u)


def max_pooling(u: Tensor, mask: Tensor) -> Tensor:
    """u (B, L, D), mask (B, L) boolean -> (B, D), each feature's largest value over the tokens."""
    return u.masked_fill(~mask[:, :, None], -torch.inf).amax(dim=1)


def max_share(u: Tensor, mask: Tensor) -> Tensor:
    """u (B, L, D), mask (B, L) boolean -> (B, L), the share of features whose maximum is at the token.

    Tokens that tie for the maximum share the feature; padding has no share.
    """
    largest = max_pooling(u, mask)[:, None]
    is_largest = ((u == largest) & mask[:, :, None]).to(u.dtype)
    return (is_largest / is_largest.sum(dim=1, keepdim=True)).mean(dim=-1)


def mean_pooling(u: Tensor, mask: Tensor) -> Tensor:
    """u (B, L, D), mask (B, L) boolean -> (B, D), the mean over the tokens."""
    return u.masked_fill(~mask[:, :, None], 0).sum(dim=1) / mask.sum(dim=1, keepdim=True)

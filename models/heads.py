"""Sentence vectors -> logits."""

import torch
from torch import Tensor, nn


class NLIHead(nn.Module):
    """[p; h; |p - h|; p * h] -> hidden -> classes (MS-SAN and DSA; MS-SAN: 2,400 -> 300 -> 3)."""

    def __init__(
        self, dim: int, *, hidden: int = 300, classes: int = 3, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Dropout(dropout),
            nn.Linear(4 * dim, hidden),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(hidden, classes),
        )

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """Premise (B, D) and hypothesis (B, D) -> (B, classes)."""
        features = torch.cat([first, second, (first - second).abs(), first * second], dim=-1)
        logits: Tensor = self.layers(features)
        return logits


class ClassificationHead(nn.Module):
    """D -> hidden -> classes."""

    def __init__(self, dim: int, *, classes: int, hidden: int = 300, dropout: float = 0.0) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Dropout(dropout),
            nn.Linear(dim, hidden),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(hidden, classes),
        )

    def forward(self, sentence: Tensor) -> Tensor:
        """(B, D) -> (B, classes)."""
        logits: Tensor = self.layers(sentence)
        return logits

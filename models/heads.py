"""Sentence vectors -> logits."""

import torch
from torch import Tensor, nn


class NLIHead(nn.Module):
    """[p; h; |p - h|; p * h] -> hidden -> classes (MS-SAN and DSA; MS-SAN: 2,400 -> 300 -> 3).

    `signed` leaves p - h as it is (DiSAN, whose hidden layer is ELU).
    """

    def __init__(
        self,
        dim: int,
        *,
        hidden: int = 300,
        classes: int = 3,
        dropout: float = 0.0,
        signed: bool = False,
        activation: type[nn.Module] = nn.ReLU,
    ) -> None:
        super().__init__()
        self.signed = signed
        self.layers = nn.Sequential(
            nn.Dropout(dropout),
            nn.Linear(4 * dim, hidden),
            activation(),
            nn.Dropout(dropout),
            nn.Linear(hidden, classes),
        )

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """Premise (B, D) and hypothesis (B, D) -> (B, classes)."""
        difference = first - second
        if not self.signed:
            difference = difference.abs()
        features = torch.cat([first, second, difference, first * second], dim=-1)
        logits: Tensor = self.layers(features)
        return logits


class ClassificationHead(nn.Module):
    """D -> hidden -> classes."""

    def __init__(
        self,
        dim: int,
        *,
        classes: int,
        hidden: int = 300,
        dropout: float = 0.0,
        activation: type[nn.Module] = nn.ReLU,
    ) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Dropout(dropout),
            nn.Linear(dim, hidden),
            activation(),
            nn.Dropout(dropout),
            nn.Linear(hidden, classes),
        )

    def forward(self, sentence: Tensor) -> Tensor:
        """(B, D) -> (B, classes)."""
        logits: Tensor = self.layers(sentence)
        return logits

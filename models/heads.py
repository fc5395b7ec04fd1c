"""Sentence vectors -> logits."""

from itertools import pairwise

import torch
from torch import Tensor, nn

from heedful.models.initialise import he


class NLIHead(nn.Module):
    """[p; h; |p - h|; p * h] -> hidden -> classes (MS-SAN: 2,400 -> 300 -> 3).

    MS-SAN and DSA print these parts in another order (docs/models.md). `signed` keeps the sign
    of p - h (DiSAN, whose hidden layer is ELU).
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
        self.layers = two_layers(4 * dim, hidden, classes, dropout, activation)

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
        self.layers = two_layers(dim, hidden, classes, dropout, activation)

    def forward(self, sentence: Tensor) -> Tensor:
        """(B, D) -> (B, classes)."""
        logits: Tensor = self.layers(sentence)
        return logits


class RelatednessHead(nn.Module):
    """[|a - b|; a * b] -> hidden, sigmoid -> the scores 1 to `scores` (Tai et al. 2015, section 4.2)."""

    def __init__(
        self, dim: int, *, hidden: int = 50, scores: int = 5, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.layers = two_layers(2 * dim, hidden, scores, dropout, nn.Sigmoid)

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """(B, D) and (B, D), in either order -> logits (B, scores)."""
        logits: Tensor = self.layers(torch.cat([(first - second).abs(), first * second], dim=-1))
        return logits


def expected_score(logits: Tensor) -> Tensor:
    """Logits (B, S) of the scores 1 to S -> their expectation (B,)."""
    scores = torch.arange(1, logits.shape[-1] + 1, dtype=logits.dtype, device=logits.device)
    return logits.softmax(-1) @ scores


class BatchNormNLIHead(NLIHead):
    """The features of NLIHead -> two hidden layers -> classes (DSA; multiple: 512, dropout 0.4)."""

    def __init__(
        self, dim: int, *, hidden: int = 300, classes: int = 3, dropout: float = 0.3
    ) -> None:
        # These layers are replaced below; they draw random numbers, on which the seeds in results/ depend.
        super().__init__(dim, hidden=hidden, classes=classes)
        self.layers = batch_norm_layers((4 * dim, hidden, hidden), classes, dropout)


class BatchNormClassificationHead(ClassificationHead):
    """D -> hidden -> classes (DSA)."""

    def __init__(self, dim: int, *, classes: int, hidden: int = 300, dropout: float = 0.4) -> None:
        super().__init__(dim, classes=classes, hidden=hidden)  # replaced, as in BatchNormNLIHead
        self.layers = batch_norm_layers((dim, hidden), classes, dropout)


def two_layers(
    inputs: int, hidden: int, outputs: int, dropout: float, activation: type[nn.Module]
) -> nn.Sequential:
    """A hidden and a linear layer, each after dropout: (B, inputs) -> (B, outputs)."""
    return nn.Sequential(
        nn.Dropout(dropout),
        nn.Linear(inputs, hidden),
        activation(),
        nn.Dropout(dropout),
        nn.Linear(hidden, outputs),
    )


def batch_norm_layers(sizes: tuple[int, ...], classes: int, dropout: float) -> nn.Sequential:
    """Hidden layers with LeakyReLU, each after batch norm and dropout, then a linear layer (DSA)."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        linear = nn.Linear(inputs, outputs)
        he(linear, dropout)
        layers += [nn.BatchNorm1d(inputs), nn.Dropout(dropout), linear, nn.LeakyReLU()]
    last = nn.Linear(sizes[-1], classes)
    he(last)
    return nn.Sequential(*layers, last)

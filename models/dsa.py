"""DSA: Dynamic Self-Attention over a densely connected CNN (Yoon, Lee and Lee, 2018).

Equation numbers are the paper's. docs/models.md decides where it is silent or contradicts itself.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

from heedful.models.convolution import Convolution
from heedful.models.initialise import he
from heedful.models.masks import token_mask
from heedful.models.sentence import Encoder, Explanation

KERNELS = (3, 5)
FIRST, GROWTH, COMPRESSED = 150, 75, 300
"""Features of X^1, of each further layer, and of a word after compression: d_1, d_l and d_c."""


class Layer(nn.Sequential):
    """h of eq. (2)-(5): convolution, dropout, LeakyReLU. `kernel` is odd, so that the length stays the same."""

    def __init__(self, inputs: int, outputs: int, kernel: int, dropout: float) -> None:
        convolution = nn.Conv1d(inputs, outputs, kernel, padding=kernel // 2)
        he(convolution, dropout)
        super().__init__(Convolution(convolution), nn.Dropout(dropout), nn.LeakyReLU())


class DenseBlock(nn.Module):
    """Phi_k, eq. (2)-(4): every layer reads the outputs of all earlier layers, the latest first."""

    def __init__(self, dim: int, kernel: int, *, layers: int, dropout: float) -> None:
        super().__init__()
        self.first = Layer(dim, FIRST, 1, dropout)
        self.growth = nn.ModuleList(
            Layer(FIRST + GROWTH * layer, GROWTH, kernel, dropout) for layer in range(layers)
        )

    def forward(self, x: Tensor, padding: Tensor) -> Tensor:
        """x (B, D, L), padding (B, 1, L) boolean -> (B, 150 + 75 * layers, L), zero on padding."""
        features: Tensor = self.first(x).masked_fill(padding, 0)
        for layer in self.growth:
            grown = layer(features).masked_fill(padding, 0)
            features = torch.cat([grown, features], dim=1)
        return features


class DenseCNN(nn.Module):
    """CNN with dense connection, section 3.1: each word in its context, at unit length."""

    def __init__(self, dim: int, *, layers: int, dropout: float) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            DenseBlock(dim, kernel, layers=layers, dropout=dropout) for kernel in KERNELS
        )
        width = len(KERNELS) * (FIRST + GROWTH * layers) + dim
        self.compression = Layer(width, COMPRESSED, 1, dropout)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """x (B, L, D), mask (B, L) boolean -> (B, L, 300)."""
        # Padding is zeroed before every convolution, which would otherwise carry it into the neighbouring words.
        padding = ~mask[:, None, :]
        x = x.transpose(1, 2).masked_fill(padding, 0)
        dense = [block(x, padding) for block in self.blocks]
        compressed = self.compression(torch.cat([*dense, x], dim=1))
        return functional.normalize(compressed, dim=1).transpose(1, 2)


class WordFeatures(nn.Module):
    """Word vectors -> the features that each of m attentions reads, eq. (2)-(6)."""

    def __init__(
        self,
        dim: int,
        attentions: int,
        size: int,
        *,
        layers: int,
        dropout: float,
        word_dropout: float,
    ) -> None:
        super().__init__()
        self.shape = (attentions, size)
        self.cnn = DenseCNN(dim, layers=layers, dropout=dropout)
        self.projection = nn.Linear(COMPRESSED, attentions * size)  # W_1..W_m and their biases
        he(self.projection)
        self.dropout = nn.Dropout(word_dropout)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """x (B, L, D), mask (B, L) boolean -> (B, m, L, size)."""
        words = functional.leaky_relu(self.projection(self.cnn(self.dropout(x), mask)))
        by_attention: Tensor = words.unflatten(-1, self.shape)
        return by_attention.transpose(1, 2)


def dynamic_attention(x: Tensor, mask: Tensor, iterations: int) -> tuple[Tensor, Tensor]:
    """Algorithm 1: words (B, m, L, d), mask (B, L) boolean -> z (B, m, d), weights (B, m, L).

    The weights are those of the last iteration, which made z. Raises ValueError for no iteration.
    """
    *_, last = attention_iterations(x, mask, iterations)
    return last


def attention_iterations(
    x: Tensor, mask: Tensor, iterations: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """z (B, m, d) and weights (B, m, L) of each iteration of `dynamic_attention`."""
    if iterations < 1:
        raise ValueError(f"{iterations} iterations: dynamic self-attention takes at least one")
    q = torch.zeros_like(x[..., 0]).masked_fill(~mask[:, None, :], -torch.inf)
    for _ in range(iterations):
        weights = q.softmax(-1)
        z = torch.tanh((weights[:, :, None] @ x).squeeze(2))
        yield z, weights
        q = q + (x @ z[..., None]).squeeze(-1)


class DSA(Encoder):
    """The encoder: dense CNN, then `attentions` dynamic self-attentions, concatenated, eq. (7).

    The defaults are single DSA; multiple DSA has 8 attentions of size 300. Four growth layers, not
    the three of the appendix, give the paper's parameter counts.
    """

    def __init__(
        self,
        *,
        dim: int = 300,
        attentions: int = 1,
        size: int = 600,
        iterations: int = 2,
        layers: int = 4,
        dropout: float = 0.2,
        word_dropout: float = 0.3,
    ) -> None:
        super().__init__()
        self.dim = attentions * size
        self.iterations = iterations
        self.words = WordFeatures(
            dim, attentions, size, layers=layers, dropout=dropout, word_dropout=word_dropout
        )

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """x (B, L, D) word vectors, lengths (B,) -> (B, m * size)."""
        mask = token_mask(lengths, x.shape[1])
        z, _ = dynamic_attention(self.words(x, mask), mask, self.iterations)
        return z.flatten(1)

    def explain(self, x: Tensor, lengths: Tensor) -> Explanation:
        """Figures 3 and 4: the weights of each attention at each iteration."""
        mask = token_mask(lengths, x.shape[1])
        words = self.words(x, mask)
        iterations = list(attention_iterations(words, mask, self.iterations))
        z, last = iterations[-1]
        return Explanation(
            z.flatten(1),
            words.transpose(1, 2).flatten(2),
            pooling={"last iteration": last.mean(1)},
            maps={
                f"attention {j + 1}, iteration {i + 1}": weights[:, j, None]
                for j in range(last.shape[1])
                for i, (_, weights) in enumerate(iterations)
            },
        )

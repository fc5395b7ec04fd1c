"""LAMA: Low Rank Factorization for Compact Multi-Head Self-Attention (Mehta et al., 2019).

Equation numbers are the paper's. docs/models.md decides where it is silent or contradicts itself.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from heedful.models.gru import BiGRU
from heedful.models.masks import token_mask
from heedful.models.pooling import mean_pooling
from heedful.models.sentence import Encoder, Explanation

PRIOR = 0.1
"""Standard deviation of the initial W_w and b_w (section 3.2)."""


class LowRankAttention(nn.Module):
    """Heads from one bilinear form of low rank, eq. (3.7) and (3.10)-(3.13).

    `context` is the size of the context vector c, `dim` that of a word annotation.
    """

    def __init__(self, context: int, dim: int, *, heads: int, rank: int) -> None:
        super().__init__()
        self.shape = (heads, rank)
        self.hidden = nn.Linear(dim, dim)  # W_w and b_w
        self.context_factors = nn.Linear(context, heads * rank, bias=False)  # P^T
        self.word_factors = nn.Linear(dim, heads * rank, bias=False)  # Q^T
        for parameter in self.hidden.parameters():
            nn.init.normal_(parameter, std=PRIOR)

    def forward(self, h: Tensor, c: Tensor, mask: Tensor) -> Tensor:
        """Annotations h (B, L, 2h), c (B, D) or (1, D), mask (B, L) -> weights (B, m, L)."""
        u = torch.tanh(self.hidden(h))
        products = self.context_factors(c)[:, None] * self.word_factors(u)  # (B, L, m k)
        f = products.unflatten(-1, self.shape).sum(-1)  # (B, L, m)
        return over_words(functional.normalize(torch.tanh(f), dim=-1), mask)


class WeightedHeads(Encoder):
    """An encoder of m heads, each a weighted sum of the words' annotations, eq. (3.14)-(3.15)."""

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """x (B, L, D) word vectors, lengths (B,) -> (B, m * 2 hidden)."""
        h, weights = self._attend(x, lengths)
        return (weights @ h).flatten(1)

    def explain(self, x: Tensor, lengths: Tensor) -> Explanation:
        """The weights of each head."""
        h, weights = self._attend(x, lengths)
        return Explanation(
            (weights @ h).flatten(1),
            h,
            pooling={"heads": weights.mean(1)},
            maps={f"head {i + 1}": weights[:, i, None] for i in range(weights.shape[1])},
        )

    def _attend(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Annotations (B, L, 2h) and the heads' weights (B, m, L)."""
        raise NotImplementedError


class LAMA(WeightedHeads):
    """The encoder: bi-GRU, low-rank attention, one weighted sum of annotations per head, eq. (3.6)-(3.15).

    c is a parameter that training starts at the mean of the corpus' word vectors (`start_context`); with
    `document_context` (LAMA+Ctx) it is the mean of the document's word vectors.
    """

    def __init__(
        self,
        *,
        dim: int = 100,
        hidden: int = 50,
        heads: int = 15,
        rank: int = 1,
        document_context: bool = False,
    ) -> None:
        super().__init__()
        self.dim = heads * 2 * hidden
        self.words = BiGRU(dim, hidden)
        self.attention = LowRankAttention(dim, 2 * hidden, heads=heads, rank=rank)
        self.context = None if document_context else nn.Parameter(torch.randn(dim) * PRIOR)

    @torch.no_grad()
    def start_context(self, mean: Tensor) -> None:
        """Set c to `mean` (D,). Raises ValueError where c comes from the document."""
        if self.context is None:
            raise ValueError("the context of LAMA+Ctx comes from each document: it has no start")
        self.context.copy_(mean)

    def _attend(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        mask = token_mask(lengths, x.shape[1])
        c = mean_pooling(x, mask) if self.context is None else self.context[None]
        h = self.words(x, lengths)
        return h, self.attention(h, c, mask)


def over_words(scores: Tensor, mask: Tensor) -> Tensor:
    """Scores (B, L, m), mask (B, L) boolean -> weights (B, m, L), a softmax over words each."""
    return scores.masked_fill(~mask[:, :, None], -torch.inf).softmax(dim=1).transpose(1, 2)

"""LAMA: Low Rank Factorization for Compact Multi-Head Self-Attention (Mehta et al., 2019).

Equation numbers are the paper's. docs/models.md decides where it is silent or contradicts itself.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from heedful.models.masks import token_mask
from heedful.models.pooling import mean_pooling
from heedful.models.sentence import Encoder, Explanation

PRIOR = 0.1
"""Standard deviation of the initial W_w and b_w (section 3.2)."""


class BiGRU(nn.Module):
    """Both directions of a GRU, eq. (3.1)-(3.4) and (3.6); the backward one starts at a sentence's last token.

    Padding is not read, in torch and in the exported graph. torch's layer adds a bias to W_h x that eq. (3.3) does not
    print, and its update gate is the paper's 1 - z.
    """

    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.layer = nn.GRU(dim, hidden, batch_first=True, bidirectional=True)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """x (B, L, D), lengths (B,) -> (B, L, 2 hidden), zero on padding."""
        if torch.onnx.is_in_onnx_export():
            return self._onnx(x, lengths)
        packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(
            self.layer(packed)[0], batch_first=True, total_length=x.shape[1]
        )
        return states

    def _onnx(self, x: Tensor, lengths: Tensor) -> Tensor:
        """`forward` as one ONNX GRU node, which reads the lengths.

        torch.export unrolls nn.GRU over the example's length, packed or not.
        """
        batch, longest, _ = x.shape
        hidden = self.layer.hidden_size
        biases = torch.cat([self._both("bias_ih"), self._both("bias_hh")], dim=1)
        states = torch.onnx.ops.symbolic(
            "GRU",
            (
                x.transpose(0, 1),
                self._both("weight_ih"),
                self._both("weight_hh"),
                biases,
                lengths.int(),
            ),
            {"direction": "bidirectional", "hidden_size": hidden, "linear_before_reset": 1},
            dtype=x.dtype,
            shape=(longest, 2, batch, hidden),
        )
        return states.permute(2, 0, 1, 3).flatten(2)

    def _both(self, kind: str) -> Tensor:
        """One parameter of both directions (2, 3 hidden, ...), its gates in ONNX's order."""
        directions = []
        for suffix in ("_l0", "_l0_reverse"):
            reset, update, new = self.layer.get_parameter(kind + suffix).chunk(3)
            directions.append(torch.cat([update, reset, new]))
        return torch.stack(directions)


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
            raise ValueError("LAMA+Ctx takes its context from each document: it has no start")
        self.context.copy_(mean)

    def _attend(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        mask = token_mask(lengths, x.shape[1])
        c = mean_pooling(x, mask) if self.context is None else self.context[None]
        h = self.words(x, lengths)
        return h, self.attention(h, c, mask)


def over_words(scores: Tensor, mask: Tensor) -> Tensor:
    """Scores (B, L, m), mask (B, L) boolean -> weights (B, m, L), a softmax over words each."""
    return scores.masked_fill(~mask[:, :, None], -torch.inf).softmax(dim=1).transpose(1, 2)

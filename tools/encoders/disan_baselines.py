"""The encoders that the DiSAN paper compares with (section 5.1)."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from heedful.models.disan import glorot, scan, source2token
from heedful.models.masks import token_mask
from heedful.models.pooling import AttentivePooling
from heedful.models.sentence import Encoder, Explanation
from tools.encoders.attention import head_maps, multi_head
from tools.encoders.positions import add_positions


class PooledWords(Encoder):
    """Attention over word vectors and nothing else: one weight per token, or one per feature."""

    def __init__(self, dim: int, pooling: AttentivePooling, name: str) -> None:
        """`name` is the name of the pooling in an explanation."""
        super().__init__()
        self.dim, self.pooling, self.name = dim, pooling, name
        self.apply(glorot)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """x (B, L, D) word vectors, lengths (B,) -> (B, D)."""
        sentence: Tensor = self.pooling(x, token_mask(lengths, x.shape[1]))
        return sentence

    def explain(self, x: Tensor, lengths: Tensor) -> Explanation:
        """The attention over the word vectors."""
        return explain_pooling(self.pooling, x, token_mask(lengths, x.shape[1]), self.name)


def word_additive(*, dim: int = 300, dropout: float = 0.0) -> PooledWords:
    """Word vectors under additive attention, eq. (5) without a query: w^T ELU(W x + b)."""
    scores = nn.Sequential(
        nn.Dropout(dropout),
        nn.Linear(dim, dim),
        nn.ELU(),
        nn.Dropout(dropout),
        nn.Linear(dim, 1, bias=False),
    )
    return PooledWords(dim, AttentivePooling(scores), "additive attention")


def word_s2t(*, dim: int = 300, dropout: float = 0.0) -> PooledWords:
    """Word vectors under source2token self-attention: DiSAN without its blocks."""
    return PooledWords(dim, source2token(dim, dropout), "source2token")


class MultiHeadS2T(Encoder):
    """Multi-head attention (Vaswani et al. 2017), then source2token.

    Together the heads have 2 D features (8 x 75 at D = 300), as DiSAN's two blocks, without biases or an
    output projection.
    """

    def __init__(self, *, dim: int = 300, heads: int = 8, dropout: float = 0.0) -> None:
        super().__init__()
        if dim % 2 or 2 * dim % heads:
            raise ValueError(f"dim {dim} must be even, and {heads} heads must divide {2 * dim}")
        self.dim = 2 * dim
        self.num_heads = heads
        self.query = nn.Linear(dim, self.dim, bias=False)
        self.key = nn.Linear(dim, self.dim, bias=False)
        self.value = nn.Linear(dim, self.dim, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.pooling = source2token(self.dim, dropout)
        self.apply(glorot)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """x (B, L, D) word vectors, lengths (B,) -> (B, 2 D)."""
        mask = token_mask(lengths, x.shape[1])
        u, _ = self._attend(x, mask)
        sentence: Tensor = self.pooling(u, mask)
        return sentence

    def explain(self, x: Tensor, lengths: Tensor) -> Explanation:
        """The weights of each head, and of source2token."""
        mask = token_mask(lengths, x.shape[1])
        u, weights = self._attend(x, mask)
        return explain_pooling(self.pooling, u, mask, "source2token", head_maps(weights))

    def _attend(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """x (B, L, D), mask (B, L) -> the heads' sums (B, L, 2 D) and weights (B, H, L, L)."""
        x = self.dropout(add_positions(x))
        return multi_head(self.query(x), self.key(x), self.value(x), mask, self.num_heads)


def lstm_step(
    h: Tensor, c: Tensor, projected: Tensor, inside: Tensor, recurrent: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """One token of an LSTM: h, c (B, D), projected (B, 4 D), inside (B, 1), recurrent (D, 4 D).

    Padding leaves the state unchanged.
    """
    i, f, o, g = (projected + h @ recurrent).chunk(4, dim=-1)
    cell = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    output = torch.sigmoid(o) * torch.tanh(cell)
    h = torch.where(inside, output, h)
    return h, torch.where(inside, cell, c), h.clone()


class LSTM(nn.Module):
    """Hochreiter and Schmidhuber 1997 with a forget gate; one bias per gate, where torch has two."""

    def __init__(self, dim: int, *, backward: bool) -> None:
        super().__init__()
        self.backwards = backward
        self.projection = nn.Linear(dim, 4 * dim)  # gates i, f, o and the candidate g
        self.recurrent = nn.Linear(dim, 4 * dim, bias=False)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """x (B, L, D), mask (B, L) boolean -> (B, L, D).

        Backwards, padding comes first and leaves the state at zero: each sentence starts at its last token.
        """
        projected, inside = self.projection(x).transpose(0, 1), mask.T[:, :, None]
        if self.backwards:
            projected, inside = projected.flip(0), inside.flip(0)
        zero = torch.zeros_like(x[:, 0])
        carry, weight = [zero, zero.clone()], self.recurrent.weight.T
        (outputs,) = scan(lstm_step, carry, [projected, inside], [weight])
        if self.backwards:
            outputs = outputs.flip(0)
        return outputs.transpose(0, 1)


class BiLSTMS2T(Encoder):
    """A bidirectional LSTM of D units each way, then source2token."""

    def __init__(self, *, dim: int = 300, dropout: float = 0.0) -> None:
        super().__init__()
        self.dim = 2 * dim
        self.directions = nn.ModuleList(LSTM(dim, backward=backward) for backward in (False, True))
        self.dropout = nn.Dropout(dropout)
        self.pooling = source2token(self.dim, dropout)
        self.apply(glorot)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """x (B, L, D) word vectors, lengths (B,) -> (B, 2 D)."""
        mask = token_mask(lengths, x.shape[1])
        sentence: Tensor = self.pooling(self._states(x, mask), mask)
        return sentence

    def explain(self, x: Tensor, lengths: Tensor) -> Explanation:
        """The attention over the states."""
        mask = token_mask(lengths, x.shape[1])
        return explain_pooling(self.pooling, self._states(x, mask), mask, "source2token")

    def _states(self, x: Tensor, mask: Tensor) -> Tensor:
        """x (B, L, D), mask (B, L) -> (B, L, 2 D)."""
        x = self.dropout(x)
        return torch.cat([direction(x, mask) for direction in self.directions], dim=-1)


def explain_pooling(
    pooling: AttentivePooling,
    u: Tensor,
    mask: Tensor,
    name: str,
    maps: Mapping[str, Tensor] | None = None,
) -> Explanation:
    """The explanation of a pooling over u (B, L, D), mask (B, L), which the paper calls `name`."""
    sentence, weights = pooling.attend(u, mask)
    return Explanation(sentence, u, pooling={name: weights.mean(-1)}, maps=maps or {})

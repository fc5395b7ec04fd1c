"""The encoder that DSA is compared with (Yoon, Lee and Lee, 2018): static in place of dynamic self-attention."""

import torch
from torch import Tensor, nn

from heedful.models.dsa import WordFeatures
from heedful.models.initialise import he
from heedful.models.masks import token_mask
from heedful.models.sentence import Encoder, Explanation


class CNNSelfAttention(Encoder):
    """The paper's baseline: the same CNN under self-attention with a static weight vector, eq. (1).

    Eq. (1) is applied to the words of eq. (6), whose size is d_v: this gives the 600 features and the
    2.4m parameters of Table 1.
    """

    def __init__(
        self,
        *,
        dim: int = 300,
        size: int = 600,
        layers: int = 4,
        dropout: float = 0.2,
        word_dropout: float = 0.3,
    ) -> None:
        super().__init__()
        self.dim = size
        self.words = WordFeatures(
            dim, 1, size, layers=layers, dropout=dropout, word_dropout=word_dropout
        )
        self.score = nn.Linear(size, size, bias=False)  # W
        self.vector = nn.Linear(size, 1, bias=False)  # v
        he(self.score)
        he(self.vector)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """x (B, L, D) word vectors, lengths (B,) -> (B, size)."""
        return self.explain(x, lengths).sentence

    def explain(self, x: Tensor, lengths: Tensor) -> Explanation:
        """The one attention."""
        mask = token_mask(lengths, x.shape[1])
        words = self.words(x, mask).squeeze(1)  # (B, L, size)
        scores = self.vector(torch.tanh(self.score(words)))  # (B, L, 1)
        weights = scores.masked_fill(~mask[:, :, None], -torch.inf).softmax(dim=1)
        return Explanation(
            (weights * words).sum(dim=1), words, pooling={"self-attention": weights.squeeze(-1)}
        )

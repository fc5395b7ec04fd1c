"""A word table and, for an unlisted word, a vector composed from the features of its spelling (text.composition)."""

import torch
from torch import Tensor, nn

SIGNATURE_WEIGHT = 0.1
"""The signature only tells words of the same features apart: it must weigh less than the spelling."""


class ComposedWords(nn.Module):
    """Word ids -> word vectors: rows of `table`, or for a negative id a composed vector."""

    def __init__(self, table: nn.Embedding, *, rows: int, signature: int) -> None:
        """`rows` of features, as wide as the table. The last `signature` features of a word are its signature."""
        super().__init__()
        self.signature = signature
        self.table = table
        layer = type(table)  # the same rounding as the table's
        self.features = layer(rows, table.embedding_dim, padding_idx=0, sparse=True)

    def reset(self, generator: torch.Generator) -> None:
        """Initialise the features with small random values."""
        with torch.no_grad():
            self.features.weight.normal_(0, 0.1, generator=generator)
            self.features.weight[0] = 0

    def forward(self, ids: Tensor, features: Tensor | None) -> Tensor:
        """ids (B, L), -k for row k - 1 of `features` (K, F) -> (B, L, D). Without `features` no id is negative."""
        if features is None:
            words: Tensor = self.table(ids)
            return words
        return self.fill(ids, features, self.table(ids.clamp(min=0)))

    def fill(self, ids: Tensor, features: Tensor, listed: Tensor) -> Tensor:
        """The vectors of listed words (B, L, D), with composed ones where the id is negative."""
        # A zero row first, so that there are at least two: ONNX Runtime adds a single row in another order.
        vectors = self.compose(nn.functional.pad(features, (0, 0, 1, 0)))
        composed = nn.functional.embedding((-ids).clamp(min=0), vectors)
        return torch.where((ids < 0)[:, :, None], composed, listed)

    def compose(self, features: Tensor) -> Tensor:
        """(K, F) -> (K, D): the mean of a word's features, and the signature, which is not trained."""
        vectors = self.features(features)  # (K, F, D), zero where there is no feature
        spelled, signature = vectors[:, : -self.signature], vectors[:, -self.signature :].detach()
        count = (features[:, : -self.signature] > 0).sum(1, keepdim=True).clamp(min=1)
        composed: Tensor = spelled.sum(1) / count + SIGNATURE_WEIGHT * signature.sum(1)
        return composed

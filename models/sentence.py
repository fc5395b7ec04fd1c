"""Word ids -> sentence vectors: the table of word vectors and an encoder over it."""

from typing import Protocol

import torch
from torch import Tensor, nn


class Encoder(Protocol):
    """What every encoder in the registry is."""

    dim: int  # size of a sentence vector
    inputs: tuple[str, ...]  # what it reads beside tokens and lengths: "heads", "alpha"

    def __call__(self, x: Tensor, lengths: Tensor, **structure: Tensor) -> Tensor:
        """x (B, L, D), lengths (B,), and by name what `inputs` lists -> (B, dim)."""


class SentenceEncoder(nn.Module):
    """ids (B, L) -> word vectors (B, L, D) -> encoder -> (B, dim)."""

    def __init__(self, embedding: nn.Module, encoder: nn.Module) -> None:
        super().__init__()
        self.embedding = embedding
        self.encoder = encoder
        self.inputs: tuple[str, ...] = encoder.inputs  # type: ignore[assignment]  # nn.Module hides attribute types

    def forward(
        self, ids: Tensor, lengths: Tensor, heads: Tensor | None = None, alpha: Tensor | None = None
    ) -> Tensor:
        """ids (B, L), lengths (B,), heads (B, L), alpha () -> (B, dim).

        Structure that the encoder does not read is ignored.
        """
        structure = {"heads": heads, "alpha": alpha}
        vectors: Tensor = self.encoder(
            self.embedding(ids), lengths, **{name: structure[name] for name in self.inputs}
        )
        return vectors


def word_table(vectors: Tensor, *, frozen: bool) -> nn.Embedding:
    """(V, D) initial vectors, row 0 = padding and zero -> the embedding layer."""
    table: nn.Embedding = nn.Embedding.from_pretrained(vectors, freeze=frozen, padding_idx=0)
    with torch.no_grad():
        table.weight[0] = 0
    return table

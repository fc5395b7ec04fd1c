"""Word ids -> sentence vectors: the table of word vectors and an encoder over it."""

import torch
from torch import Tensor, nn


class Encoder(nn.Module):
    """What every encoder in the registry has; there is nothing here to inherit but the two names.

    `forward(x (B, L, D), lengths (B,), **structure) -> (B, dim)`, where `structure` is what `inputs` lists.
    """

    dim: int
    """Size of a sentence vector."""
    inputs: tuple[str, ...]
    """What is read beside tokens and lengths: of `heads` (B, L) and `alpha` ()."""


class Concatenated(Encoder):
    """Several encoders of the same words side by side, each reading the same structure."""

    def __init__(self, *encoders: Encoder) -> None:
        super().__init__()
        self.dim = sum(encoder.dim for encoder in encoders)
        self.inputs = encoders[0].inputs
        self.encoders = nn.ModuleList(encoders)

    def forward(self, x: Tensor, lengths: Tensor, **structure: Tensor) -> Tensor:
        """x (B, L, D), lengths (B,), structure as each reads it -> (B, sum of their dims)."""
        return torch.cat([encode(x, lengths, **structure) for encode in self.encoders], dim=-1)


class SentenceEncoder(nn.Module):
    """ids (B, L) -> word vectors (B, L, D) -> encoder -> (B, dim)."""

    def __init__(self, embedding: nn.Module, encoder: Encoder) -> None:
        super().__init__()
        self.embedding = embedding
        self.encoder = encoder
        self.inputs = encoder.inputs

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
    """(V, D) initial vectors, row 0 = padding and zero -> the embedding layer, with sparse gradients."""
    table: nn.Embedding = nn.Embedding.from_pretrained(
        vectors, freeze=frozen, padding_idx=0, sparse=True
    )
    with torch.no_grad():
        table.weight[0] = 0
    return table

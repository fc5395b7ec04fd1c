"""Ids -> sentence vectors: word vectors from a table or a transformer, and an encoder over them."""

import torch
from torch import Tensor, nn

from models.pieces import PieceEmbedding


class Encoder(nn.Module):
    """What every encoder in the registry has; there is nothing here to inherit but the two names.

    `forward(x (B, L, D), lengths (B,), **structure) -> (B, dim)`, where `structure` is what `inputs` lists.
    """

    dim: int
    """Size of a sentence vector."""
    inputs: tuple[str, ...]
    """What is read beside tokens and lengths: of `heads` (B, L), `alpha` () and `cls` (B, D), a transformer's [CLS]."""


class SentenceEncoder(nn.Module):
    """ids (B, S) -> word vectors (B, L, D) -> encoder -> (B, dim); S = L where `embedding` is a word table."""

    def __init__(self, embedding: nn.Module, encoder: Encoder) -> None:
        """Raises ValueError for an encoder that reads [CLS] over a table, which has none."""
        super().__init__()
        of_pieces = isinstance(embedding, PieceEmbedding)
        if "cls" in encoder.inputs and not of_pieces:
            raise ValueError("this encoder reads [CLS]: it needs a transformer, not a word table")
        self.embedding = embedding
        self.encoder = encoder
        self.inputs = (
            *(name for name in encoder.inputs if name != "cls"),
            *(("pieces",) if of_pieces else ()),
        )

    def forward(
        self,
        ids: Tensor,
        lengths: Tensor,
        heads: Tensor | None = None,
        alpha: Tensor | None = None,
        pieces: Tensor | None = None,
    ) -> Tensor:
        """ids (B, S), lengths (B,), heads (B, L), alpha (), pieces of each word (B, L) -> (B, dim).

        Structure that the encoder does not read is ignored.
        """
        structure = {"heads": heads, "alpha": alpha}
        if isinstance(self.embedding, PieceEmbedding):
            words, structure["cls"] = self.embedding(ids, pieces)
        else:
            words = self.embedding(ids)
        vectors: Tensor = self.encoder(
            words, lengths, **{name: structure[name] for name in self.encoder.inputs}
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

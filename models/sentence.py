"""Ids -> sentence vectors: word vectors from a table or a transformer, and an encoder over them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn

from heedful.models.composed_words import ComposedWords
from heedful.models.four_bit_embedding import FourBitEmbedding
from heedful.models.pieces import PieceEmbedding


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """The intermediate results of an encoder, by name. Rows of padding mean nothing.

    `maps` sum to 1 over the last axis; the row of a token that may attend to nothing is zero. `gate` lies
    between 0 and 1. `pooling` sums to 1: how much of each token enters the sentence vector. Every encoder
    has one, and the first is used to shade tokens.
    """

    sentence: Tensor  # (B, dim), the result of `forward`
    states: Tensor  # (B, L, S), the tokens before pooling
    pooling: Mapping[str, Tensor]  # (B, L) each
    # (B, L, L) each, or (B, 1, L) for a map of the sentence.
    maps: Mapping[str, Tensor] = field(default_factory=dict)
    gate: Mapping[str, Tensor] = field(default_factory=dict)  # (B, L) each, the mean over features


class Encoder(nn.Module):
    """The interface of every encoder in the registry.

    `forward(x (B, L, D), lengths (B,), **structure) -> (B, dim)`, where `structure` holds what `inputs` lists.
    `explain(x, lengths, **structure, **switches) -> Explanation`, where `switches` may hold a () boolean
    for each of `priors`: False switches that prior off.
    """

    dim: int
    """Size of the result of `forward`: the sentence vector, then `head_features`."""
    head_features: int = 0
    """Extra features for the head; not part of the embedding."""
    inputs: tuple[str, ...] = ()
    """Inputs beyond tokens and lengths: `heads` (B, L), `alpha` () and `cls` (B, D), a transformer's [CLS]."""
    explain: Callable[..., Explanation]
    priors: tuple[str, ...] = ()
    """Priors that `explain` can switch off: `direction`, `word` and `dependency`."""


class SentenceEncoder(nn.Module):
    """ids (B, S) -> word vectors (B, L, D) -> encoder -> (B, dim); S = L where `embedding` is a word table.

    A `projection`, where there is one, maps the encoder's vector to the sentence vector.
    """

    def __init__(
        self, embedding: nn.Module, encoder: Encoder, projection: nn.Linear | None = None
    ) -> None:
        """Raises ValueError for an encoder that reads [CLS] over a table, which has none."""
        super().__init__()
        reads_pieces = isinstance(embedding, PieceEmbedding)
        if "cls" in encoder.inputs and not reads_pieces:
            raise ValueError("this encoder reads [CLS]: it needs a transformer, not a word table")
        self.embedding = embedding
        self.encoder = encoder
        self.projection = projection
        self.dim = encoder.dim if projection is None else projection.out_features
        self.inputs = (
            *(name for name in encoder.inputs if name != "cls"),
            *(("pieces",) if reads_pieces else ()),
            *(("features",) if isinstance(embedding, ComposedWords) else ()),
        )

    def forward(
        self,
        ids: Tensor,
        lengths: Tensor,
        heads: Tensor | None = None,
        alpha: Tensor | None = None,
        pieces: Tensor | None = None,
        features: Tensor | None = None,
    ) -> Tensor:
        """ids (B, S), lengths (B,), heads (B, L), alpha (), pieces of each word (B, L) and features of the
        composed words (K, F) -> (B, dim).

        Structure that the encoder does not read is ignored.
        """
        words, structure = self._read(ids, heads, alpha, pieces, features)
        return self._project(self.encoder(words, lengths, **structure))

    def explain(
        self,
        ids: Tensor,
        lengths: Tensor,
        heads: Tensor | None = None,
        alpha: Tensor | None = None,
        pieces: Tensor | None = None,
        features: Tensor | None = None,
        scale: Tensor | None = None,
        **switches: Tensor,
    ) -> Explanation:
        """The encoder's explanation of the inputs of `forward`, with each word vector multiplied by `scale` (B, L)."""
        words, structure = self._read(ids, heads, alpha, pieces, features)
        if scale is not None:
            words = words * scale[:, :, None]
        explanation: Explanation = self.encoder.explain(words, lengths, **structure, **switches)
        return replace(explanation, sentence=self._project(explanation.sentence))

    def _project(self, vectors: Tensor) -> Tensor:
        projected: Tensor = vectors if self.projection is None else self.projection(vectors)
        return projected

    def _read(
        self,
        ids: Tensor,
        heads: Tensor | None,
        alpha: Tensor | None,
        pieces: Tensor | None,
        features: Tensor | None,
    ) -> tuple[Tensor, dict[str, Tensor | None]]:
        """Word vectors (B, L, D), and the structure that the encoder reads."""
        structure = {"heads": heads, "alpha": alpha}
        if isinstance(self.embedding, PieceEmbedding):
            words, structure["cls"] = self.embedding(ids, pieces)
        elif isinstance(self.embedding, ComposedWords):
            words = self.embedding(ids, features)
        else:
            words = self.embedding(ids)
        return words, {name: structure[name] for name in self.encoder.inputs}


def word_table(vectors: Tensor, *, frozen: bool, four_bits: bool = False) -> nn.Embedding:
    """(V, D) initial vectors, row 0 = padding and zero -> the embedding layer, with sparse gradients."""
    layer = FourBitEmbedding if four_bits else nn.Embedding
    table: nn.Embedding = layer.from_pretrained(vectors, freeze=frozen, padding_idx=0, sparse=True)
    with torch.no_grad():
        table.weight[0] = 0
    return table

"""Word ids -> sentence vectors: the table of word vectors and an encoder over it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """What an encoder computes on its way, by name. Rows of padding mean nothing.

    `maps` sum to 1 over the last axis, but for a token that may attend to nothing, whose row is
    zero. `gate` lies between 0 and 1. `pooling` sums to 1: how much of each token enters the
    sentence vector; the first is the one to shade tokens by, and every encoder has it.
    """

    sentence: Tensor  # (B, dim), what `forward` gives
    states: Tensor  # (B, L, S), the tokens as they are pooled
    pooling: Mapping[str, Tensor]  # (B, L) each
    maps: Mapping[str, Tensor] = field(
        default_factory=dict
    )  # (B, L, L) or, of a sentence, (B, 1, L)
    gate: Mapping[str, Tensor] = field(default_factory=dict)  # (B, L) each, the mean over features


class Encoder(nn.Module):
    """What every encoder in the registry has; there is nothing here to inherit but the names.

    `forward(x (B, L, D), lengths (B,), **structure) -> (B, dim)`, where `structure` is what `inputs` lists.
    `explain(x, lengths, **structure, **switches) -> Explanation` of the same sentences, where
    `switches` are of `priors`, each () boolean: False is the encoder without that prior.
    """

    dim: int
    """Size of a sentence vector."""
    inputs: tuple[str, ...]
    """What is read beside tokens and lengths: of `heads` (B, L) and `alpha` ()."""
    priors: tuple[str, ...] = ()
    """What `explain` can switch off: of `direction`, `word` and `dependency`."""


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

    def explain(
        self,
        ids: Tensor,
        lengths: Tensor,
        heads: Tensor | None = None,
        alpha: Tensor | None = None,
        **switches: Tensor,
    ) -> Explanation:
        """The encoder's explanation of ids (B, L), lengths (B,), heads (B, L), alpha ()."""
        structure = {"heads": heads, "alpha": alpha}
        read = {name: structure[name] for name in self.inputs}
        explanation: Explanation = self.encoder.explain(
            self.embedding(ids), lengths, **read, **switches
        )
        return explanation


def word_table(vectors: Tensor, *, frozen: bool) -> nn.Embedding:
    """(V, D) initial vectors, row 0 = padding and zero -> the embedding layer, with sparse gradients."""
    table: nn.Embedding = nn.Embedding.from_pretrained(
        vectors, freeze=frozen, padding_idx=0, sparse=True
    )
    with torch.no_grad():
        table.weight[0] = 0
    return table

"""The arc parser: words -> scores of their governors and of the relations to them, by convolutions alone.

Words are hashed as in spaCy's `MultiHashEmbed` (text.hashed_words): the rows of an attribute's table are summed, and
the attributes' sums are joined and mixed by a maxout. Residual convolutions, x + LN(relu(W [x-d; x; x+d])),
read a word's surroundings. Arcs are dot products of a word as dependent and another as governor (Dozat and
Manning 2017, without the middle matrix); a part of both is rotated by the word's position (rotary position embedding,
Su et al. 2021), so that their product depends on the distance. Relations are scored as Kiperwasser and
Goldberg 2016 do, by a layer over a word and its governor.

Among governors 0 is the root. T is the number of different words of a batch, F of a word's rows, D the
size of a word vector, R the number of relations, E the width of the layer over a relation.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

FAR = -1e4
"""Score of an impossible governor: the word itself, or padding."""
PIECES = 2
"""Pieces of the maxout."""
DILATIONS = (1, 1, 2, 4)
SLOWEST = 64
"""The lowest rotary frequency is 1 / this, in radians a word; the highest is 1."""


class Words(nn.Module):
    """Rows of the attributes' tables (T, F) -> word vectors (T, D)."""

    def __init__(self, tables: Sequence[int], embedding: int, width: int) -> None:
        super().__init__()
        bags = [nn.EmbeddingBag(rows, embedding, mode="sum") for rows in tables]
        self.tables = nn.ModuleList(bags)
        self.mix = nn.Linear(embedding * len(tables), PIECES * width)
        self.norm = nn.LayerNorm(width)
        for table in bags:
            nn.init.uniform_(table.weight, -0.1, 0.1)

    def forward(self, rows: Tensor) -> Tensor:
        parts = rows.chunk(len(self.tables), -1)
        summed = [table(part) for table, part in zip(self.tables, parts, strict=True)]
        mixed = self.mix(torch.cat(summed, -1)).unflatten(-1, (PIECES, -1)).amax(-2)
        vectors: Tensor = self.norm(mixed)
        return vectors


class Window(nn.Module):
    """x + LN(relu(W [x-d; x; x+d])). (B, L, D) -> (B, L, D); outside a sentence x is 0."""

    def __init__(self, width: int, dilation: int) -> None:
        super().__init__()
        self.dilation = dilation
        self.mix = nn.Linear(3 * width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        d, length = self.dilation, x.shape[1]
        inside = functional.pad(x * mask[..., None], (0, 0, d, d))
        around = torch.cat([inside[:, i * d : i * d + length] for i in range(3)], -1)
        wider: Tensor = x + self.norm(functional.relu(self.mix(around)))
        return wider


class ArcParser(nn.Module):
    """The distinct words of a batch, and the number of the word at each position -> scores of arcs and of relations."""

    def __init__(
        self,
        *,
        tables: Sequence[int],  # rows of each attribute's table
        relations: int,
        width: int = 128,
        embedding: int = 96,
        arc: int = 64,
        rotary: int = 32,
        relation: int = 96,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.arc, self.rotary = arc, rotary
        self.words = Words(tables, embedding, width)
        self.windows = nn.ModuleList(Window(width, dilation) for dilation in DILATIONS)
        self.dropout = nn.Dropout(dropout)
        self.dependent = nn.Linear(width, arc + rotary)
        self.governor = nn.Linear(width, arc + rotary, bias=False)
        self.prior = nn.Linear(width, 1, bias=False)  # how likely a word governs anything
        self.root = nn.Linear(width, 1)  # how likely it is a root
        self.relation_dependent = nn.Linear(width, relation)
        self.relation_governor = nn.Linear(width, relation, bias=False)
        self.relation_out = nn.Linear(relation, relations)

    def forward(self, rows: Tensor, places: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Rows (T, F) of the distinct words; `places` (B, L) the number of each word among them, from 1, 0 on padding.

        Returns arc scores (B, L, 1 + L), and words as dependents and as governors of relations, (B, L, E) each.
        """
        vectors = functional.pad(self.words(rows), (0, 0, 1, 0))
        return self.read(functional.embedding(places, vectors), places > 0)

    def read(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Word vectors (B, L, D) and whether each position holds a word (B, L) -> the results of `forward`."""
        x = self.dropout(x)
        for window in self.windows:
            x = self.dropout(window(x, mask))
        scores = self._arcs(x)
        itself = torch.eye(scores.shape[-1], dtype=torch.bool, device=scores.device)
        scores = scores.masked_fill(~mask[:, None, :] | itself, FAR)
        scores = torch.cat([self.root(x).float(), scores], -1)
        return scores, self.relation_dependent(x), self.relation_governor(x)

    def relations(self, dependents: Tensor, governors: Tensor, heads: Tensor) -> Tensor:
        """(B, L, E) each and the governor of each word (B, L), counted from 0 -> scores (B, L, R)."""
        chosen = governors.gather(1, heads[..., None].expand(-1, -1, governors.shape[-1]))
        scores: Tensor = self.relation_out(functional.relu(dependents + chosen))
        return scores

    def _arcs(self, x: Tensor) -> Tensor:
        """(B, L, L) [dependent, governor]."""
        cos, sin = rotary_table(x.shape[1], self.rotary)
        dependent, governor = (
            torch.cat([role[..., : self.arc], rotate(role[..., self.arc :], cos, sin)], -1)
            for role in (self.dependent(x), self.governor(x))
        )
        scores = dependent @ governor.transpose(1, 2) / (self.arc + self.rotary) ** 0.5
        with_prior: Tensor = scores + self.prior(x).transpose(1, 2)
        return with_prior.float()


def rotary_table(length: int, rotary: int) -> tuple[Tensor, Tensor]:
    """Cosines and sines of each position's angles, (L, rotary / 2) each."""
    pairs = rotary // 2
    frequencies = SLOWEST ** -(torch.arange(pairs) / (pairs - 1))
    angles = torch.arange(length)[:, None] * frequencies
    return angles.cos(), angles.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate the pairs of x (B, L, 2 P), the first halves with the second, by angles (L, P)."""
    first, second = x.chunk(2, -1)
    return torch.cat([first * cos - second * sin, first * sin + second * cos], -1)

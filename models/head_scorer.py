"""The head scorer: words -> scores of their governors and of the relations to them.

Words and windows are those of spaCy's `Tok2Vec` (MultiHashEmbed, MaxoutWindowEncoder), so that training
begins with what a transition parser has learned. Self-attention (Vaswani et al. 2017) stands on them, then
the biaffine arcs of Dozat and Manning 2017. Relations are scored as Kiperwasser and Goldberg 2016 do, by a
layer over a word and its governor: a second biaffine product would cost more than all windows.
Among governors position 0 is the root. F is the number of a word's features (text.word_features), V of
words with a static vector, R of relations, E the width of the layer over a relation.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from heedful.models.attention import multi_head

FAR = -1e4
"""Score of a governor that is none: a word itself, or padding."""
PIECES = 3


class Maxout(nn.Module):
    """The largest of PIECES linear maps, then a LayerNorm. (.., I) -> (.., D)."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.maps = nn.Linear(inputs, width * PIECES)
        self.norm = nn.LayerNorm(width, eps=1e-8)

    def forward(self, x: Tensor) -> Tensor:
        normed: Tensor = self.norm(self.maps(x).unflatten(-1, (-1, PIECES)).amax(-1))
        return normed


class Words(nn.Module):
    """Features (B, L, F) -> (B, L, D): the static vector and the sum of hashed rows of each attribute."""

    def __init__(self, vectors: tuple[int, int], tables: Sequence[int], width: int) -> None:
        super().__init__()
        self.vectors = nn.Embedding(*vectors)
        self.project = nn.Linear(vectors[1], width, bias=False)
        self.tables = nn.ModuleList(nn.Embedding(rows, width) for rows in tables)
        self.mix = Maxout(width * (1 + len(tables)), width)

    def forward(self, features: Tensor) -> Tensor:
        static, *hashed = features.split([1, *[4] * len(self.tables)], -1)
        summed = [table(rows).sum(-2) for table, rows in zip(self.tables, hashed, strict=True)]
        x: Tensor = self.mix(torch.cat([*summed, self.project(self.vectors(static[..., 0]))], -1))
        return x


class Window(nn.Module):
    """x + maxout [left; x; right]: a word and its neighbours. (B, L, D) -> (B, L, D)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.mix = Maxout(3 * width, width)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = x * mask[..., None]  # padding is as the text's end is
        outside = torch.zeros_like(x[:, :1])
        left, right = torch.cat([outside, x[:, :-1]], 1), torch.cat([x[:, 1:], outside], 1)
        wider: Tensor = x + self.mix(torch.cat([left, x, right], -1))
        return wider


class Attention(nn.Module):
    """x + multi-head self-attention, without positions: the windows know them. (B, L, D) -> (B, L, D)."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.read = nn.Linear(width, 3 * width)
        self.write = nn.Linear(width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        query, key, value = self.read(self.norm(x)).chunk(3, dim=-1)  # (B, L, D) each
        attended, _ = multi_head(query, key, value, mask, self.heads)
        wider: Tensor = x + self.dropout(self.write(attended))
        return wider


class HeadScorer(nn.Module):
    """Features (B, L, F), 0 in the first behind a sentence's end -> what trees are made of."""

    def __init__(
        self,
        *,
        vectors: tuple[int, int],  # V and d, with the rows that hold no word
        tables: Sequence[int],  # rows of each attribute's table
        relations: int,
        width: int = 96,
        windows: int = 4,
        attentions: int = 2,
        arc: int = 128,
        relation: int = 96,
        dropout: float = 0.15,
    ) -> None:
        super().__init__()
        self.words = Words(vectors, tables, width)
        self.windows = nn.ModuleList(Window(width) for _ in range(windows))
        self.attentions = nn.ModuleList(Attention(width, 4, dropout) for _ in range(attentions))
        self.norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)
        self.arc_dependent, self.arc_governor = nn.Linear(width, arc), nn.Linear(width, arc)
        self.arc_root = nn.Parameter(torch.zeros(arc))
        self.arc_product = nn.Linear(arc, arc, bias=False)
        self.arc_prior = nn.Linear(arc, 1, bias=False)  # how likely a word governs anything
        self.relation_dependent = nn.Linear(width, relation)
        self.relation_governor = nn.Linear(width, relation, bias=False)
        self.relation_out = nn.Linear(relation, relations)

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """-> arc scores (B, L, 1 + L), and words as dependents and as governors, (B, L, E) each."""
        mask = features[..., 0] > 0
        return self.score(self.encode(features, mask), mask)

    def encode(self, features: Tensor, mask: Tensor) -> Tensor:
        """What spaCy's `Tok2Vec` gives: (B, L, D)."""
        x: Tensor = self.words(features)
        for window in self.windows:
            x = window(x, mask)
        return x

    def score(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x = self.dropout(x)
        for attention in self.attentions:
            x = attention(x, mask)
        x = self.dropout(self.norm(x))
        dependent = self.arc_product(self.dropout(functional.gelu(self.arc_dependent(x))))
        governor = self.dropout(functional.gelu(self.arc_governor(x)))
        scores = dependent @ governor.transpose(1, 2) + self.arc_prior(governor).transpose(1, 2)
        itself = torch.eye(scores.shape[-1], dtype=torch.bool, device=scores.device)
        scores = scores.masked_fill(~mask[:, None, :] | itself, FAR)
        root = (dependent * self.arc_root).sum(-1, keepdim=True)
        scores = torch.cat([root, scores], -1)
        return scores, self.relation_dependent(x), self.relation_governor(x)

    def relations(self, dependents: Tensor, governors: Tensor, heads: Tensor) -> Tensor:
        """(B, L, E) each and the governor of each word (B, L), counted from 0 -> (B, L, R)."""
        chosen = governors.gather(1, heads[..., None].expand(-1, -1, governors.shape[-1]))
        scores: Tensor = self.relation_out(functional.relu(dependents + chosen))
        return scores

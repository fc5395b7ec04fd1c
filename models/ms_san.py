"""MS-SAN: Multiple Structural Priors Guided Self Attention Network (Qi, Zhang, Yin and Liu, 2020).

Equation numbers are the paper's. docs/models.md decides where it is silent or contradicts itself.
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from heedful.models.aligned_words import WORDS, FirstWords
from heedful.models.gates import FusionGate
from heedful.models.masks import (
    direction,
    doubling_rounds,
    token_mask,
    tree_distance,
    word_distance,
)
from heedful.models.pooling import AttentivePooling, SharedScore, max_pooling, max_share
from heedful.models.sentence import Encoder, Explanation

KINDS = 3
"""Kinds of distance in the order of the attention heads: word distance, dependency distance, none."""
HALVES: dict[bool | str, tuple[str, str]] = {
    True: ("forward", "backward"),
    False: ("both ways", "both ways"),
    "forward": ("forward", "forward"),
    "backward": ("backward", "backward"),
}
"""Directions of the two halves of the heads, by the setting `direction`."""


def required(name: str, value: Tensor | None) -> Tensor:
    """The input `name`. Raises ValueError where it is missing."""
    if value is None:
        raise ValueError(f"this encoder reads {name}")
    return value


class DotProduct(nn.Module):
    """Plain dot-product attention, without positions."""

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        """q, k (B, H, L, d) -> (B, H, L, L): [q, k], not yet scaled."""
        return q @ k.transpose(-1, -2)

    def mix(self, weights: Tensor, v: Tensor) -> Tensor:
        """weights (B, H, L, L), v (B, H, L, d) -> (B, H, L, d)."""
        return weights @ v


Positions = Callable[[tuple[int, int], int], DotProduct]
"""(halves, heads of a half), size of a head -> the module that scores keys and mixes values."""


class MultiMaskAttention(nn.Module):
    """Multi-mask based multi-head attention, eq. (1)-(6).

    The first half of the heads looks backwards in the sentence (forward mask), the second half
    forwards (backward mask); heads i and i + H/2 share the kind of distance. Switching a prior off
    keeps its heads, without that mask. `direction` may also name one direction for all heads; `positions` replaces the
    plain dot product.
    """

    def __init__(
        self,
        dim: int,
        num_heads: int,
        *,
        direction: bool | str,
        word: bool,
        dependency: bool,
        positions: Positions | None,
        max_tokens: int,
    ) -> None:
        super().__init__()
        if num_heads < 1 or num_heads % (2 * KINDS) or dim % num_heads:
            raise ValueError(
                f"{num_heads} heads over {dim} features: heads must be a multiple of {2 * KINDS}, "
                "dim of heads"
            )
        if direction not in HALVES:
            raise ValueError(f"direction {direction!r}: known are true, false, forward, backward")
        self.num_heads, self.size = num_heads, dim // num_heads
        self.halves, self.word, self.dependency = HALVES[direction], word, dependency
        self.rounds = doubling_rounds(max_tokens)
        self.positions = positions((2, num_heads // 2), self.size) if positions else DotProduct()
        self.query = nn.Linear(dim, dim, bias=False)
        self.key = nn.Linear(dim, dim, bias=False)
        self.value = nn.Linear(dim, dim, bias=False)
        self.output = nn.Linear(dim, dim, bias=False)  # W^O

    def forward(
        self,
        x: Tensor,
        mask: Tensor,
        heads: Tensor | None,
        alpha: Tensor | None,
        switches: Mapping[str, Tensor] = {},
    ) -> tuple[Tensor, Tensor]:
        """x (B, L, D), mask (B, L), heads (B, L), alpha () -> (B, L, D), weights."""
        weights = self.weights(x, mask, heads, alpha, switches)
        attended = self.positions.mix(weights, self._split(self.value(x)))  # (B, 2, H/2, L, d)
        output: Tensor = self.output(attended.flatten(1, 2).transpose(1, 2).flatten(2))
        return output, weights

    def weights(
        self,
        x: Tensor,
        mask: Tensor,
        heads: Tensor | None,
        alpha: Tensor | None,
        switches: Mapping[str, Tensor] = {},
    ) -> Tensor:
        """Attention weights (B, 2, H/2, L, L): direction, kind of distance, query, key.

        `switches` may hold a () boolean for a prior: False leaves its mask out.
        """
        q, k = self._split(self.query(x)), self._split(self.key(x))
        scores = self.positions.scores(q, k) / self.size**0.5  # (B, 2, H/2, L, L)
        if self.word or self.dependency:
            distances = self._distances(mask.shape[1], heads, switches)
            scores = scores - required("alpha", alpha) * distances
        allowed = self._allowed(mask, switches)
        weights: Tensor = scores.masked_fill(~allowed, -torch.inf).softmax(-1)
        return weights

    def names(self) -> list[str]:
        """A name for each head: its direction and kind of distance, numbered where two are equal."""
        kinds = (
            "word distance" if self.word else "no distance",
            "dependency distance" if self.dependency else "no distance",
            "no distance",
        )
        names = [
            f"{direction}, {kinds[i % KINDS]}"
            for direction in self.halves
            for i in range(self.num_heads // 2)
        ]
        return [
            name if names.count(name) == 1 else f"{name} ({names[:i].count(name) + 1})"
            for i, name in enumerate(names)
        ]

    def _split(self, x: Tensor) -> Tensor:
        """(B, L, D) -> (B, 2, H/2, L, d)."""
        per_head: Tensor = x.unflatten(-1, (2, self.num_heads // 2, self.size))
        return per_head.permute(0, 2, 3, 1, 4)

    def _distances(
        self, longest: int, heads: Tensor | None, switches: Mapping[str, Tensor]
    ) -> Tensor:
        """-M_dis of eq. (6), one kind of distance after the other; broadcast to (B, 1, H/2, L, L)."""
        device = self.query.weight.device
        word = word_distance(longest, device)[None]  # (1, L, L)
        none = torch.zeros_like(word)
        tree = none
        if self.dependency:
            tree = tree_distance(required("heads", heads), self.rounds)
        word, tree = (
            distance * switches[prior] if prior in switches else distance
            for prior, distance in (("word", word), ("dependency", tree))
        )
        kinds = (word if self.word else none, tree, none)
        stacked = torch.stack([kind.expand_as(tree) for kind in kinds], dim=1)  # (B, 3, L, L)
        return stacked.repeat(1, self.num_heads // 2 // KINDS, 1, 1)[:, None]

    def _allowed(self, mask: Tensor, switches: Mapping[str, Tensor]) -> Tensor:
        """M_dir of eq. (6) and the padding mask: boolean, broadcast to (B, 2, H/2, L, L)."""
        longest = mask.shape[1]
        forward, backward = direction(longest, mask.device)
        masks = {"forward": forward, "backward": backward, "both ways": forward | backward}
        directions = torch.stack([masks[half] for half in self.halves])  # (2, L, L)
        if "direction" in switches:
            directions = directions | ~switches["direction"]
        allowed = directions[None, :, None] & mask[:, None, None, None, :]
        # A padding token attends to itself, so that its row is not NaN.
        return allowed | torch.eye(longest, dtype=torch.bool, device=mask.device)


class FeedForward(nn.Sequential):
    """Position-wise FFN, eq. (10), delta = ReLU."""

    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__(nn.Linear(dim, hidden), nn.ReLU(), nn.Linear(hidden, dim))


class MSSAN(Encoder):
    """The encoder: attention, fusion gate, FFN, then attentive and max pooling (Figure 1).

    `direction`, `word` and `dependency` switch the masks (Table 2). `positions` replaces the scoring of keys: relative
    positions replace both distance masks in Table 4 (`tools.encoders.relative`). With `cls` a transformer's [CLS]
    vector replaces the max pooling (MS-SAN+BERT). With `first_words` so many features of each of the first words are
    appended to the sentence vector (models.aligned_words; not in the paper): features of the word vectors, with
    `first_states` also of the states after attention, which encode the words' roles. With `skip` a weighted mean of the
    word vectors is appended to the pooled states, so that attention does not blur what a text names; a word's weight is
    learned and depends on the word alone (not in the paper).

    `dropout` applies to the word vectors, to the output of attention and to that of the FFN; the paper
    does not say where (its appendix is not public), so this is our choice.
    """

    def __init__(
        self,
        *,
        dim: int = 300,
        heads: int = 6,
        hidden: int = 300,
        direction: bool | str = True,
        word: bool = True,
        dependency: bool = True,
        positions: Positions | None = None,
        cls: bool = False,
        first_words: int = 0,
        first_states: bool = False,
        skip: bool = False,
        dropout: float = 0.0,
        max_tokens: int = 256,
    ) -> None:
        super().__init__()
        self.head_features = WORDS * first_words
        self.dim = (3 if skip else 2) * dim + self.head_features
        # Without the dependency prior nothing is parsed; without any distance there is no alpha.
        inputs = {"heads": dependency, "alpha": word or dependency, "cls": cls}
        self.inputs = tuple(name for name, is_read in inputs.items() if is_read)
        priors = {"direction": direction, "word": word, "dependency": dependency}
        self.priors = tuple(name for name, is_on in priors.items() if is_on)
        self.attention = MultiMaskAttention(
            dim,
            heads,
            direction=direction,
            word=word,
            dependency=dependency,
            positions=positions,
            max_tokens=max_tokens,
        )
        self.gate = FusionGate(dim)
        self.feed_forward = FeedForward(dim, hidden)
        self.norm = nn.LayerNorm(dim)
        self.pooling = AttentivePooling(FeedForward(dim, hidden))
        self.words = AttentivePooling(SharedScore(dim)) if skip else None
        self.first_states = first_states
        self.first_words = (
            FirstWords(2 * dim if first_states else dim, first_words) if first_words else None
        )
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        x: Tensor,
        lengths: Tensor,
        heads: Tensor | None = None,
        alpha: Tensor | None = None,
        cls: Tensor | None = None,
    ) -> Tensor:
        """x (B, L, D) word vectors, lengths (B,), heads (B, L), alpha (), cls (B, D) -> (B, dim)."""
        mask = token_mask(lengths, x.shape[1])
        u, _, _ = self._tokens(x, mask, heads, alpha, {})
        return self._sentence(self.pooling(u, mask), x, u, mask, cls)

    def explain(
        self,
        x: Tensor,
        lengths: Tensor,
        heads: Tensor | None = None,
        alpha: Tensor | None = None,
        cls: Tensor | None = None,
        **switches: Tensor,
    ) -> Explanation:
        """Figure 4: each head's weights, the gate, and the poolings."""
        mask = token_mask(lengths, x.shape[1])
        u, weights, f = self._tokens(x, mask, heads, alpha, switches)
        attended, pooled = self.pooling.attend(u, mask)
        pooling = {"attentive pooling": pooled.mean(-1)}
        if "cls" not in self.inputs:
            pooling["max pooling"] = max_share(u, mask)
        if self.words is not None:
            pooling["words"] = self.words.attend(x, mask)[1].mean(-1)
        return Explanation(
            self._sentence(attended, x, u, mask, cls),
            u,
            pooling=pooling,
            maps=dict(zip(self.attention.names(), weights.flatten(1, 2).unbind(1), strict=True)),
            gate={"fusion gate": f.mean(-1)},
        )

    def _tokens(
        self,
        x: Tensor,
        mask: Tensor,
        heads: Tensor | None,
        alpha: Tensor | None,
        switches: Mapping[str, Tensor],
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Tokens (B, L, D), attention weights (B, 2, H/2, L, L) and the gate (B, L, D)."""
        x = self.dropout(x)
        attended, weights = self.attention(x, mask, heads, alpha, switches)
        u, f = self.gate(x, self.dropout(attended))
        return self.norm(u + self.dropout(self.feed_forward(u))), weights, f

    def _sentence(
        self, attended: Tensor, x: Tensor, u: Tensor, mask: Tensor, cls: Tensor | None
    ) -> Tensor:
        """The sentence vector (B, dim): attentive pooling, then [CLS] or the max pooling of u, then the words' mean
        and the first words."""
        other = required("cls", cls) if "cls" in self.inputs else max_pooling(u, mask)
        parts = [attended, other]
        if self.words is not None:
            parts.append(self.words(x, mask))
        if self.first_words is not None:
            states = torch.cat([x, u], dim=-1) if self.first_states else x
            parts.append(self.first_words(states, mask))
        return torch.cat(parts, dim=-1)

"""The encoders that LAMA is compared with (Mehta et al., 2019, section 4.3).

Beyond eq. (3.19) and (3.20) the paper gives only their sizes; each class states its other choices.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

from heedful.models.convolution import Convolution
from heedful.models.lama import BiGRU, WeightedHeads, over_words
from heedful.models.masks import token_mask
from heedful.models.pooling import max_pooling, max_share, mean_pooling
from heedful.models.sentence import Encoder, Explanation
from tools.encoders.attention import head_maps, multi_head
from tools.encoders.average import mean_share
from tools.encoders.positions import add_positions


class SAN(WeightedHeads):
    """Structured self-attention (Lin et al. 2017), eq. (3.19), over the same bi-GRU.

    `size` is d_a; the paper's baseline has 30 heads and d_a = 512.
    """

    def __init__(
        self, *, dim: int = 100, hidden: int = 50, heads: int = 30, size: int = 512
    ) -> None:
        super().__init__()
        self.dim = heads * 2 * hidden
        self.words = BiGRU(dim, hidden)
        self.attention = nn.Sequential(
            nn.Linear(2 * hidden, size, bias=False),  # W_s1
            nn.Tanh(),
            nn.Linear(size, heads, bias=False),  # W_s2
        )

    def _attend(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        h: Tensor = self.words(x, lengths)
        return h, over_words(self.attention(h), token_mask(lengths, x.shape[1]))


class BiGRUMax(Encoder):
    """Bi-GRU, then each feature's largest value over the words."""

    def __init__(self, *, dim: int = 100, hidden: int = 50) -> None:
        super().__init__()
        self.dim = 2 * hidden
        self.words = BiGRU(dim, hidden)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """x (B, L, D) word vectors, lengths (B,) -> (B, 2 hidden)."""
        return max_pooling(self.words(x, lengths), token_mask(lengths, x.shape[1]))

    def explain(self, x: Tensor, lengths: Tensor) -> Explanation:
        """The positions of the maxima."""
        h, mask = self.words(x, lengths), token_mask(lengths, x.shape[1])
        return Explanation(max_pooling(h, mask), h, pooling={"max pooling": max_share(h, mask)})


class CNNMax(Encoder):
    """CNN and max over time (Kim 2014): windows of 3, 4 and 5 words, 100 ReLU maps each.

    As in Kim's code a window may extend beyond the sentence, over zeros, as long as it holds a word.
    """

    WINDOWS = (3, 4, 5)

    def __init__(self, *, dim: int = 100, maps: int = 100) -> None:
        super().__init__()
        self.dim = maps * len(self.WINDOWS)
        self.convolutions = nn.ModuleList(
            Convolution(nn.Conv1d(dim, maps, window, padding=window - 1)) for window in self.WINDOWS
        )

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """x (B, L, D) word vectors, lengths (B,) -> (B, 3 maps)."""
        return torch.cat([max_pooling(*maps) for maps in self._windows(x, lengths)], dim=-1)

    def explain(self, x: Tensor, lengths: Tensor) -> Explanation:
        """The positions of the maxima: the words of a window share its weight equally."""
        mask = token_mask(lengths, x.shape[1]).float()
        pooled, shares = [], []
        for width, (maps, inside) in zip(self.WINDOWS, self._windows(x, lengths), strict=True):
            ones = torch.ones(1, 1, width, device=x.device)
            held = functional.conv1d(mask[:, None], ones, padding=width - 1)  # words in a window
            pooled.append(max_pooling(maps, inside))
            part = max_share(maps, inside)[:, None] / held.clamp(min=1)
            shares.append(functional.conv1d(part, ones).squeeze(1) * mask)
        pooling = {"max pooling": torch.stack(shares).mean(0)}
        return Explanation(torch.cat(pooled, dim=-1), x, pooling=pooling)

    def _windows(self, x: Tensor, lengths: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """For each width the maps (B, L + width - 1, maps) and which windows hold a word."""
        longest = x.shape[1]
        words = x.masked_fill(~token_mask(lengths, longest)[:, :, None], 0).transpose(1, 2)
        for width, convolution in zip(self.WINDOWS, self.convolutions, strict=True):
            beyond = width - 1  # more windows than words
            windows = convolution(words).relu().transpose(1, 2)
            yield windows, token_mask(lengths + beyond, longest + beyond)


class Transformer(Encoder):
    """One Transformer encoder layer (Vaswani et al. 2017, TE), then the mean over words.

    Word vectors are projected to d_model = `size` and get sinusoidal positions; the feed-forward layer is
    four times as wide, layer norm follows each residual sum. The mean is our choice.
    """

    def __init__(
        self, *, dim: int = 100, size: int = 1024, heads: int = 16, dropout: float = 0.1
    ) -> None:
        super().__init__()
        if size % heads or size % 2:
            raise ValueError(f"{heads} heads over {size} features: size must be even and divisible")
        self.dim = size
        self.num_heads = heads
        self.project = nn.Linear(dim, size)
        self.query = nn.Linear(size, size, bias=False)
        self.key = nn.Linear(size, size, bias=False)
        self.value = nn.Linear(size, size, bias=False)
        self.output = nn.Linear(size, size, bias=False)  # W^O
        self.feed_forward = nn.Sequential(
            nn.Linear(size, 4 * size), nn.ReLU(), nn.Linear(4 * size, size)
        )
        self.norms = nn.ModuleList([nn.LayerNorm(size), nn.LayerNorm(size)])
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """x (B, L, D) word vectors, lengths (B,) -> (B, size)."""
        mask = token_mask(lengths, x.shape[1])
        words, _ = self._layer(x, mask)
        return mean_pooling(words, mask)

    def explain(self, x: Tensor, lengths: Tensor) -> Explanation:
        """The weights of each head; every token has the same weight in the mean."""
        mask = token_mask(lengths, x.shape[1])
        words, weights = self._layer(x, mask)
        return Explanation(
            mean_pooling(words, mask),
            words,
            pooling={"mean": mean_share(mask)},
            maps=head_maps(weights),
        )

    def _layer(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """x (B, L, D), mask (B, L) -> the words (B, L, S) and the heads' weights (B, H, L, L)."""
        words = self.project(x)
        words = self.dropout(add_positions(words))
        attended, weights = self._attend(words, mask)
        words = self.norms[0](words + self.dropout(attended))
        return self.norms[1](words + self.dropout(self.feed_forward(words))), weights

    def _attend(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Multi-head attention, eq. (3.20): x (B, L, S), mask (B, L) -> (B, L, S), weights."""
        attended, weights = multi_head(
            self.query(x), self.key(x), self.value(x), mask, self.num_heads
        )
        return self.output(attended), weights

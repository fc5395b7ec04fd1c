"""Learned relative-position terms for dot-product attention.

Each class scores keys for queries and mixes values by attention weights. H is one or
more axes of heads: q, k, v are (B, H, L, d). A learned term is computed once for each distance k - q,
from -(L - 1) to L - 1, and moved to its key by shifting the rows (Dai et al. 2019, appendix B): this takes
B*H*L*(2 L - 1) floats, not d floats for every pair.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from heedful.models.ms_san import DotProduct
from tools.encoders.positions import sinusoids


def by_key(scores: Tensor) -> Tensor:
    """(.., L, 2 L - 1), a column for each distance -> (.., L, L): [q, k]."""
    longest = scores.shape[-2]
    shifted = pad(scores, (1, 0)).flatten(-2)[..., longest:]
    pairs: Tensor = shifted.unflatten(-1, (longest, 2 * longest - 1))[..., :longest]
    return pairs


def by_distance(weights: Tensor) -> Tensor:
    """The inverse of `by_key`: (.., L, L): [q, k] -> (.., L, 2 L - 1), zero where no key has the distance."""
    longest = weights.shape[-1]
    shifted = pad(pad(weights, (0, longest - 1)).flatten(-2), (longest, 0))
    columns: Tensor = shifted.unflatten(-1, (longest, 2 * longest))[..., 1:]
    return columns


def distances(longest: int, device: torch.device) -> Tensor:
    """(2 L - 1,) int: the distances k - q in the order of the columns."""
    return torch.arange(1 - longest, longest, device=device)


class Shaw(DotProduct):
    """Self-Attention with Relative Position Representations (Shaw, Uszkoreit and Vaswani, 2018).

    e_ij = x_i W^Q (x_j W^K + a^K_ij)^T / sqrt(d), eq. (4), and z_i = sum_j alpha_ij (x_j W^V + a^V_ij),
    eq. (3), where a_ij is the learned vector of the distance j - i, clipped to +-`clip` (section 3.2).
    As in their base model (section 4.1) `clip` is 16 and every head has its own vectors.
    They start as large as the keys and values of unit vectors; the paper does not say how.
    """

    def __init__(self, heads: tuple[int, ...], size: int, clip: int = 16) -> None:
        super().__init__()
        self.clip = clip
        self.keys = nn.Parameter(torch.randn(*heads, 2 * clip + 1, size) / size**0.5)  # a^K
        self.values = nn.Parameter(torch.randn(*heads, 2 * clip + 1, size) / size**0.5)  # a^V

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        every = self._every(self.keys, q.shape[-2])
        return super().scores(q, k) + by_key(q @ every.transpose(-1, -2))

    def mix(self, weights: Tensor, v: Tensor) -> Tensor:
        every = self._every(self.values, v.shape[-2])
        return super().mix(weights, v) + by_distance(weights) @ every

    def _every(self, vectors: Tensor, longest: int) -> Tensor:
        """(H, 2 clip + 1, d) -> (H, 2 L - 1, d), the vector of every distance."""
        clipped = distances(longest, vectors.device).clamp(-self.clip, self.clip)
        return vectors.index_select(-2, clipped + self.clip)


class TransformerXL(DotProduct):
    """The relative positions of Transformer-XL (Dai et al., 2019, section 3.3), without its memory.

    A_ij = (a) q_i . k_j + (b) q_i . W_kR R_(i-j) + (c) u . k_j + (d) v . W_kR R_(i-j), where R holds
    sinusoids and u, v are learned for each head. The paper only looks back; for later tokens R is the
    same formula at a negative distance. All four terms are scaled by 1 / sqrt(d),
    and u and v start as normals of 0.02, as in the authors' code.
    """

    def __init__(self, heads: tuple[int, ...], size: int) -> None:
        super().__init__()
        self.heads, self.size = heads, size
        self.dim = torch.Size(heads).numel() * size
        self.relative = nn.Linear(self.dim, self.dim, bias=False)  # W_kR
        self.content_bias = nn.Parameter(0.02 * torch.randn(*heads, 1, size))  # u
        self.position_bias = nn.Parameter(0.02 * torch.randn(*heads, 1, size))  # v

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        backwards = -distances(q.shape[-2], q.device).to(q.dtype)  # i - j, where i is the query
        r = self.relative(sinusoids(backwards, self.dim))  # (2 L - 1, D)
        r = r.unflatten(-1, (*self.heads, self.size)).movedim(0, -2)  # (H, 2 L - 1, d)
        content = super().scores(q + self.content_bias, k)  # (a) and (c)
        return content + by_key((q + self.position_bias) @ r.transpose(-1, -2))  # (b) and (d)

"""Relative positions as loops: one head and one pair of tokens at a time."""

from dataclasses import dataclass

from tests.reference.arithmetic import Array, Positions, sinusoid


@dataclass(frozen=True)
class Shaw(Positions):
    """Shaw et al. 2018; w^K and w^V are [head][distance + clip]."""

    w_k: Array
    w_v: Array
    clip: int

    def score(self, head: int, query: Array, key: Array, i: int, j: int) -> float:
        """Eq. (4)."""
        return float(query @ (key + self.w_k[head][self._clipped(i, j)]))

    def value(self, head: int, value: Array, i: int, j: int) -> Array:
        """The bracket of eq. (3)."""
        summed: Array = value + self.w_v[head][self._clipped(i, j)]
        return summed

    def _clipped(self, i: int, j: int) -> int:
        return max(-self.clip, min(self.clip, j - i)) + self.clip


@dataclass(frozen=True)
class TransformerXL(Positions):
    """Dai et al. 2019, section 3.3. W_kR (D, D) maps a column; u and v are [head]."""

    w_kr: Array
    u: Array
    v: Array

    def score(self, head: int, query: Array, key: Array, i: int, j: int) -> float:
        """The terms (a) to (d)."""
        size = len(query)
        r = (self.w_kr @ sinusoid(i - j, len(self.w_kr)))[head * size : (head + 1) * size]
        a, b = query @ key, query @ r
        c, d = self.u[head] @ key, self.v[head] @ r
        return float(a + b + c + d)

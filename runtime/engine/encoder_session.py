"""A model's encoder graph, and what its batches cost."""

import math
from dataclasses import dataclass, field

from heedful.runtime.bundles.card import Card
from heedful.runtime.engine.session import Session
from heedful.text.arrays import Floats
from heedful.text.graph import CUDA

BUDGET, CUDA_BUDGET = 320, 16384
"""Cost limit of a batch, in tokens of a linear encoder. A token of a batch of 512 costs up to 9 % more on a core
with 2 MB of cache."""
OVERHEAD, CUDA_OVERHEAD = 32, 1024
"""Fixed cost of a batch, in tokens: 260 to 310 µs, a token takes 8 to 12 (int8, one core)."""
QUADRATIC_FROM = 16
"""Up to this length a quadratic encoder costs no more than a linear one."""


@dataclass(slots=True, eq=False, weakref_slot=True)
class EncoderSession:
    """A model's encoder graph."""

    card: Card
    session: Session[Floats]
    budget: int = field(init=False)
    """Cost limit of a batch."""
    overhead: int = field(init=False)
    """Fixed cost of a batch."""

    def __post_init__(self) -> None:
        cuda = self.session.provider == CUDA
        self.budget = CUDA_BUDGET if cuda else BUDGET
        self.overhead = CUDA_OVERHEAD if cuda else OVERHEAD

    def cost(self, length: int) -> int:
        """Cost of a sentence in a batch whose longest it is."""
        if self.card.cost == "linear":
            return length
        return max(length, math.ceil(length * length / QUADRATIC_FROM))

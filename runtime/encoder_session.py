"""A model's encoder graph, and what its batches cost."""

import math
from dataclasses import dataclass, field

from heedful.runtime.card import Card
from heedful.runtime.session import Session
from heedful.text.arrays import Floats
from heedful.text.graph import CUDA

BUDGET, CUDA_BUDGET = 512, 16384
"""Cost limit of a batch, in tokens of a linear encoder."""
OVERHEAD = 1 / 16
"""Fixed cost of a batch, as a share of its budget: 260 to 310 µs, a token takes 8 to 12 (int8, one core)."""
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
        self.budget = CUDA_BUDGET if self.session.provider == CUDA else BUDGET
        self.overhead = round(OVERHEAD * self.budget)

    def cost(self, length: int) -> int:
        """Cost of a sentence in a batch whose longest it is."""
        if self.card.cost == "linear":
            return length
        return max(length, math.ceil(length * length / QUADRATIC_FROM))

"""What zero-shot classification says of a text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from heedful.text.arrays import Doubles


@dataclass(frozen=True, slots=True)
class FittingLabels:
    """How well each label fits a text, the best first, and the probability that none does."""

    scores: dict[str, float]
    none: float

    @classmethod
    def make(cls, labels: Sequence[str], scores: Doubles) -> Self:
        """Of L labels and their scores (L + 1,), the last of which is none's."""
        best = np.argsort(-scores[:-1], kind="stable")
        return cls({labels[i]: float(scores[i]) for i in best}, float(scores[-1]))

    @property
    def label(self) -> str:
        """The label that fits best."""
        return next(iter(self.scores))

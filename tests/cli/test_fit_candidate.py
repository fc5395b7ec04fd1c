"""Which candidate `fit` chooses."""

from typing import Any

import numpy as np
import pytest

from heedful.cli.fit_candidate import Candidate, best
from heedful.training.assess import HeldOut
from heedful.training.linear import Recipe

ROWS = 100
"""With 80 right of 100, a standard error is 4."""


def candidate(name: str, right: int, sure: float, **recipe: Any) -> Candidate:
    """Answers `right` of the rows rightly, with logits of this size."""
    targets = np.eye(2, dtype=bool)[np.arange(ROWS) % 2]
    signs = np.where(np.arange(ROWS) < right, sure, -sure)[:, None]
    held = HeldOut(np.arange(ROWS), signs * targets, targets, np.zeros(ROWS, int))
    read = Recipe(strength=1, **recipe) if recipe else None
    return Candidate(name, held, 0.0, lambda _: pytest.fail("not made"), read)


def test_kinds_go_before_scores_within_a_standard_error() -> None:
    words = candidate("words", 80, 1, words=True, vectors=False)
    both = candidate("both", 78, 1, words=True, vectors=True)
    taught = candidate("taught", 77, 1, words=True, vectors=True, teacher="frozen")
    better = candidate("taught", 77, 1, words=True, vectors=True, teacher="fine-tuned")
    far = candidate("taught", 75, 1, words=True, vectors=True, teacher="fine-tuned")
    tuned = candidate("encoder", 80, 1)
    assert best([words, both]) is both
    assert best([words, both, taught]) is taught
    assert best([words, both, taught, better]) is better
    assert best([words, both, far]) is both
    assert best([words, both, taught, tuned]) is tuned

"""Which candidate `fit` chooses."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful.cli.fit_candidate import Candidate, Problem, best, finalists
from heedful.training.assess import HeldOut
from heedful.training.labelled_texts import Row
from heedful.training.linear import Recipe

BOTH = {"words": True, "vectors": True}
ROWS = 100
"""With 80 right of 100, a standard error is 4."""


def candidate(name: str, right: int, sure: float, **recipe: Any) -> Candidate:
    """Answers `right` of the rows rightly, with logits of this size."""
    return of_rows(name, np.arange(ROWS) < right, sure, **recipe)


def of_rows(name: str, right: np.ndarray, sure: float, **recipe: Any) -> Candidate:
    rows = np.arange(len(right))
    targets = np.eye(2, dtype=bool)[rows % 2]
    signs = np.where(right, sure, -sure)[:, None]
    held = HeldOut(rows, signs * targets, targets, np.zeros(len(rows), int))
    read = Recipe(strength=1, **recipe) if recipe else None
    return Candidate(name, held, 0.0, lambda _: pytest.fail("not made"), read)


def test_kinds_go_before_scores_within_a_standard_error() -> None:
    words = candidate("words", 80, 1, words=True, vectors=False)
    both = candidate("both", 78, 1, **BOTH)
    taught = candidate("taught", 77, 1, **BOTH, teacher="frozen")
    better, far = (
        candidate("taught", right, 1, **BOTH, teacher="fine-tuned") for right in (77, 75)
    )
    tuned = candidate("encoder", 80, 1)
    assert best([words, both]) is both
    assert best([words, both, taught]) is taught
    assert best([words, both, taught, better]) is better
    assert best([words, both, far]) is both
    assert best([words, both, taught, tuned]) is tuned


def test_pairs_of_one_first_text_are_held_out_together() -> None:
    rows = [Row(i, (f"a  text {i // 2}", f"claim {i}"), "ab"[i % 2]) for i in range(4)]
    groups = Problem.of(Path("pairs.csv"), rows, "").groups
    assert groups[0] == groups[1] != groups[2] == groups[3]


def test_class_weights_count_in_the_choice_too() -> None:
    """Nine tenths are of one class: one answers it always, the other knows eight of ten rows of either."""
    rows = np.arange(ROWS)
    targets = np.eye(2, dtype=bool)[(rows < 10).astype(int)]
    made = [of_rows("always", rows >= 10, 2, **BOTH), of_rows("either", rows % 10 >= 2, 2, **BOTH)]
    for balanced, wins in ((False, "always"), (True, "either")):
        weighed = []
        for one in made:
            logits = np.where(one.held.right[:, None], 2.0, -2.0) * targets
            held = HeldOut(rows, logits, targets, rows * 0, balanced=balanced)
            weighed.append(replace(one, held=held))
        assert best(weighed).name == wins


def test_candidates_of_different_rows_are_compared_on_the_same_ones() -> None:
    """Words alone are best on all 500 rows, and right for 40 of the first 100, which an encoder was held out on."""
    both = of_rows("both", np.arange(500) % 2 == 0, 1, **BOTH)
    words = of_rows("words", np.arange(500) >= 60, 1, words=True, vectors=False)
    worse, better = candidate("encoder", 35, 1), candidate("encoder", 60, 1)
    found = [(one.name, one.held.score) for one in finalists([both, words, better])]
    assert found == [("words", 0.4), ("encoder", 0.6)]
    assert best([both, words, better]) is better
    assert best([both, words, worse]) is words
    assert len(best([both, words, worse]).held.rows) == 500

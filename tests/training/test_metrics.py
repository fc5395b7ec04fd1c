"""The metrics against their definitions, in loops."""

import math
from itertools import product

import numpy as np
import pytest

from heedful.text.arrays import Doubles
from heedful.training.metrics import mse, pearson, spearman


def sides(seed: int) -> tuple[Doubles, Doubles]:
    """With ties on both sides."""
    rng = np.random.default_rng(seed)
    gold = rng.integers(1, 6, 30).astype(float)
    return np.round(gold + rng.normal(size=30), 0), gold


def r(a: Doubles, b: Doubles) -> float:
    a, b = a - sum(a) / len(a), b - sum(b) / len(b)
    return float(sum(a * b) / math.sqrt(sum(a * a) * sum(b * b)))


def ranks(values: Doubles) -> Doubles:
    """1 + how many are smaller + half of how many others are equal."""
    return np.array(
        [1 + sum(values < one) + (sum(values == one) - 1) / 2 for one in values], np.float64
    )


@pytest.mark.parametrize("seed", range(3))
def test_correlations_and_error_are_their_definitions(seed: int) -> None:
    answers, gold = sides(seed)
    assert pearson(answers, gold) == pytest.approx(r(answers, gold))
    assert spearman(answers, gold) == pytest.approx(r(ranks(answers), ranks(gold)))
    errors = [(a - b) ** 2 for a, b in zip(answers, gold, strict=True)]
    assert mse(answers, gold) == pytest.approx(sum(errors) / 30)


def test_a_constant_side_correlates_with_nothing() -> None:
    for metric, flat in product((pearson, spearman), (0, 1)):
        answers = [np.arange(4.0), np.arange(4.0)]
        answers[flat] = np.full(4, 2.5)
        assert metric(*answers) == 0.0

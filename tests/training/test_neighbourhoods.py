"""Groups of near examples: a partition, whose groups are tighter than chance."""

import numpy as np

from heedful.training.prepare import neighbourhoods


def test_groups_are_a_partition_of_near_rows() -> None:
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(8, 16)) * 5
    rows = np.repeat(np.arange(8), 40)
    vectors = (centres[rows] + rng.normal(size=(320, 16))).astype(np.float16)
    groups = neighbourhoods(vectors, 50, np.random.default_rng(1))
    assert sorted(np.concatenate(groups).tolist()) == list(range(320))
    assert all(0 < len(group) <= 50 for group in groups)
    purity = np.mean([np.bincount(rows[group]).max() / len(group) for group in groups])
    assert purity > 0.6, "chance is an eighth"


def test_equal_rows_are_halved_too() -> None:
    groups = neighbourhoods(np.zeros((100, 3)), 10, np.random.default_rng(0))
    assert sorted(np.concatenate(groups).tolist()) == list(range(100))
    assert max(map(len, groups)) <= 10

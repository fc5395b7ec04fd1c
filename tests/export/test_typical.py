"""The index of training sentences: half of unseen ones lie farther than its median, and strangers farther than all."""

import numpy as np
import pytest

from heedful.export.errors import ExportError
from heedful.export.typical import CENTROIDS, LEAST, typical
from heedful.runtime.bundles.typical import Typical
from heedful.text.arrays import Floats


def near(axis: int, count: int, seed: int) -> Floats:
    """(count, 8) vectors around one axis."""
    noise = np.random.default_rng(seed).normal(scale=0.2, size=(count, 8))
    vectors: Floats = (np.eye(8)[axis] + noise).astype(np.float32)
    return vectors


def test_a_share_is_that_of_training_sentences_farther_away() -> None:
    index = typical(near(0, 2000, 1))
    assert index.centroids.shape == (CENTROIDS, 8)
    assert index.share(index.centroids).min() > 0.99  # nothing is nearer than a centroid itself
    assert np.median(index.share(near(0, 2000, 2))) == pytest.approx(0.5, abs=0.05)
    assert index.share(near(5, 100, 3)).max() < 0.01
    again = Typical.read(index.to_bytes(), 8)
    np.testing.assert_array_equal(again.share(near(0, 9, 4)), index.share(near(0, 9, 4)))


def test_too_few_sentences_are_refused() -> None:
    with pytest.raises(ExportError, match=f"{LEAST - 1} training sentences are too few"):
        typical(near(0, LEAST - 1, 1))

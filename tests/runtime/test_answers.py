"""Vectors and probabilities are those of scikit-learn and SciPy in double precision."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import special
from sklearn import preprocessing
from sklearn.metrics.pairwise import cosine_similarity

from heedful.runtime.answers import cosines, normalise, softmax
from heedful.text.arrays import Floats

SHAPES = hnp.array_shapes(min_dims=2, max_dims=2, max_side=6)
FINITE = st.floats(width=32, allow_nan=False, allow_infinity=False)
ROWS = hnp.arrays(np.float32, SHAPES, elements=FINITE)


@given(ROWS)
def test_rows_of_any_size_have_length_one_or_are_zero(rows: Floats) -> None:
    unit = normalise(rows)
    wide = rows.astype(np.float64) * 2.0**150  # scikit-learn takes rows below 1e-15 for zero
    assert unit.dtype == np.float32
    np.testing.assert_allclose(unit, preprocessing.normalize(wide), atol=1e-6)
    actual = cosines(rows, rows)
    assert (np.abs([actual, cosines(rows, -rows)]) <= 1).all()
    np.testing.assert_allclose(actual, cosine_similarity(wide), atol=1e-6)


@given(ROWS)
def test_probabilities_are_the_softmax_of_the_logits(logits: Floats) -> None:
    expected = special.softmax(logits.astype(np.float64), axis=1)
    np.testing.assert_allclose(softmax(logits), expected, rtol=1e-6, atol=1e-300)
    assert softmax(logits).sum(axis=1) == pytest.approx(1, abs=1e-12)

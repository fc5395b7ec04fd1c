import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from heedful.runtime.answers import cosines, normalise, softmax
from heedful.text.arrays import Floats

SHAPES = hnp.array_shapes(min_dims=2, max_dims=2, max_side=6)
VECTORS = hnp.arrays(
    np.float32, SHAPES, elements=st.floats(width=32, allow_nan=False, allow_infinity=False)
)


@given(VECTORS)
def test_rows_have_length_one_or_are_zero(vectors: Floats) -> None:
    unit = normalise(vectors)
    assert unit.dtype == np.float32
    assert unit.shape == vectors.shape
    for row, before in zip(unit.astype(float), vectors, strict=True):
        assert np.linalg.norm(row) == pytest.approx(1 if before.any() else 0, abs=1e-6)
        if before.any():  # the same direction
            largest = np.abs(before).argmax()
            expected = before.astype(float) / float(before[largest])
            np.testing.assert_allclose(row / row[largest], expected, atol=1e-6)


@given(hnp.arrays(np.float32, SHAPES, elements=st.floats(-(2.0**100), 2.0**100, width=32)))
def test_probabilities_sum_to_one_in_the_order_of_the_logits(logits: Floats) -> None:
    probabilities = softmax(logits)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-12)
    assert (probabilities >= 0).all()
    for row, before in zip(probabilities, logits, strict=True):
        assert (np.diff(row[np.argsort(before, kind="stable")]) >= 0).all()


def test_softmax_is_exp_over_its_sum() -> None:
    logits = np.log(np.array([[1, 2, 5]], np.float32))
    np.testing.assert_allclose(softmax(logits), [[1 / 8, 2 / 8, 5 / 8]], rtol=1e-6)


@given(VECTORS)
def test_cosines_are_those_of_the_textbook(vectors: Floats) -> None:
    actual = cosines(vectors[0], vectors)
    assert actual.shape == (len(vectors),)
    assert (np.abs(actual) <= 1).all()
    wide = vectors.astype(np.float64)
    norms = np.linalg.norm(wide, axis=1)
    for row, norm, cosine in zip(wide, norms, actual, strict=True):
        expected = (row / norm) @ (wide[0] / norms[0]) if norm and norms[0] else 0
        assert cosine == pytest.approx(expected, abs=1e-6)

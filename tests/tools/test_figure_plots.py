"""The papers' figures: they show what was given, and the same input gives the same file."""

from typing import Any

import numpy as np

from tools import figure_plots


def heights(axes: Any) -> list[float]:
    """The height of each bar."""
    return [bar.get_height() for bar in axes.patches]


def test_principal_components_are_numpys() -> None:
    vectors = np.random.default_rng(0).normal(size=(50, 6)) @ np.diag([5, 3, 1, 1, 1, 0.5])
    points, shares = figure_plots.principal(vectors)
    centred = vectors - vectors.mean(0)
    _, sizes, directions = np.linalg.svd(centred, full_matrices=False)
    largest = np.abs(directions[:2]).argmax(1)
    signs = np.sign(directions[np.arange(2), largest])
    np.testing.assert_allclose(points, centred @ directions[:2].T * signs, atol=1e-10)
    np.testing.assert_allclose(shares, (sizes**2 / (sizes**2).sum())[:2], atol=1e-12)
    turned, _ = figure_plots.principal(-vectors)
    np.testing.assert_allclose(turned, -points, atol=1e-10)  # the directions have one sign


def test_accuracy_is_counted_by_length() -> None:
    lengths = [3, 9, 10, 14, 40, 70]
    right = [True, False, True, True, False, False]
    axes, behind = figure_plots.accuracy_by_length({"one": (lengths, right)}).axes
    (line, *_) = axes.get_lines()
    x, y = line.get_data()
    np.testing.assert_array_equal(x, [0, 1, 7])  # bins without a sentence have no point
    np.testing.assert_array_equal(y, [0.5, 1, 0])
    assert heights(behind) == [2, 2, 0, 0, 0, 0, 0, 2]
    assert axes.get_legend_handles_labels()[1] == ["one, 0.500 in all"]

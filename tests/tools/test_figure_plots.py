"""The papers' figures: they show what was given, and the same input gives the same file."""

from io import BytesIO
from typing import Any

import numpy as np
from PIL import Image

from tests.cli.test_explain_page import sentence
from tools import figure_plots

WORDS = ("two", "kids", "wash")


def answer(kind: str, *names: str) -> dict[str, Any]:
    """An answer with different attention under each name."""
    maps = [
        {"name": name, "weights": np.roll(np.eye(3) * 0.5, i, axis=1)}
        for i, name in enumerate(names)
    ]
    return {"sentences": [{**sentence(*WORDS), kind: maps}]}


def shown(axes: Any) -> np.ndarray:
    (image,) = axes.get_images()
    return np.asarray(image.get_array())


def heights(axes: Any) -> list[float]:
    """The height of each bar."""
    return [bar.get_height() for bar in axes.patches]


def test_a_map_shows_the_weights_under_their_words() -> None:
    found = answer("maps", "forward", "backward")
    axes = figure_plots.disan_attention([found, found]).axes
    assert len(axes) == 4
    for i, name in enumerate(("forward", "backward")):
        assert axes[i].get_title() == name
        np.testing.assert_array_equal(shown(axes[i]), np.roll(np.eye(3) * 0.5, i, axis=1))
        labels = axes[i].get_xticklabels(), axes[i].get_yticklabels()
        assert [[label.get_text() for label in side] for side in labels] == [[*WORDS]] * 2


def test_each_head_stands_under_its_mask() -> None:
    kinds = ("word distance", "dependency distance", "no distance")
    names = [f"{way}, {kind}" for way in ("forward", "backward") for kind in kinds]
    masks = {name: np.full((3, 3), i / 10) for i, name in enumerate(names)}
    axes = {
        one.get_title(): one
        for one in figure_plots.ms_san_heads(answer("maps", *names), masks).axes
    }
    assert len(axes) == 12
    for i, name in enumerate(names):
        np.testing.assert_array_equal(shown(axes[f"mask: {name}"]), i / 10)
        np.testing.assert_array_equal(
            shown(axes[f"head: {name}"]), np.roll(np.eye(3) * 0.5, i, axis=1)
        )


def test_gates_and_pooling_are_bars() -> None:
    found = {"sentences": [{**sentence(*WORDS), "gate": [
        {"name": "forward", "weights": [0.1, 0.2, 0.3]},
        {"name": "backward", "weights": [0.6, 0.5, 0.4]},
    ]}]}  # fmt: skip
    (axes,) = figure_plots.disan_gates([found]).axes
    assert heights(axes) == [0.1, 0.2, 0.3, 0.6, 0.5, 0.4]
    (axes, _) = figure_plots.disan_pooling([found, found]).axes
    assert heights(axes) == [0.1, 0.7, 0.2]


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


def test_the_same_numbers_are_the_same_bytes_of_a_png() -> None:
    points = np.random.default_rng(1).normal(size=(40, 3))
    made = [figure_plots.png(figure_plots.dynamic_weights(points, range(40))) for _ in range(2)]
    assert made[0] == made[1]
    with Image.open(BytesIO(made[0])) as image:
        assert image.format == "PNG"
        assert image.size == (480, 420)

"""Metrics against their definitions, and scores of a split; held-out rows, their scores and what follows from them."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from sklearn.metrics import f1_score

from heedful.runtime.answers import softmax
from heedful.training import assess
from heedful.training.assess import HeldOut, answered, most_precise, risk_coverage, suspects
from heedful.training.metrics import fit_temperature, mse, ndcg, pearson, spearman
from tools.suites.figures import calibration_error


def test_correlations_and_error_are_those_by_hand() -> None:
    """Equal answers share their ranks: 2.5, 1, 2.5 and 4. A constant side correlates with nothing."""
    answers, gold, flat = np.array([2.0, 1, 2, 5]), np.arange(1.0, 5), np.full(4, 2.5)
    assert pearson(answers, gold) == pytest.approx(5 / math.sqrt(9 * 5))
    assert spearman(answers, gold) == pytest.approx(3 / math.sqrt(4.5 * 5))
    assert mse(answers, gold) == 1
    for metric in (pearson, spearman):
        assert metric(flat, gold) == metric(gold, flat) == 0.0


def test_ndcg_is_the_mean_over_queries_of_discounted_gains() -> None:
    scores = np.array([[0.1, 0.9, 0.5, 0.5], [0.4, 0.3, 0.2, 0.1]])
    gains = [{0: 1.0, 2: 3.0}, {3: 1.0}]
    # The first query's order is 1, 2, 3, 0, the second's 0, 1, 2, 3.
    first = (3 / math.log2(3) + 1 / math.log2(5)) / (3 / math.log2(2) + 1 / math.log2(3))
    assert ndcg(scores, gains) == pytest.approx((first + 1 / math.log2(5)) / 2)
    behind = -np.arange(12.0)[None]  # what stands behind the tenth place gains nothing
    assert ndcg(behind, [{10: 1.0}]) == 0
    assert ndcg(behind, [{9: 1.0}]) == pytest.approx(1 / math.log2(11))


def drawn(temperature: float) -> tuple[np.ndarray, np.ndarray]:
    """Logits (20,000, 3) that are `temperature` times too large, and classes drawn from the right ones."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(20_000, 3)) * 2
    cumulated = softmax(logits).cumsum(axis=1)
    classes = (rng.random(len(logits))[:, None] > cumulated).sum(axis=1)
    return logits * temperature, classes


@pytest.mark.parametrize("temperature", [0.4, 1.0, 2.5])
def test_the_temperature_is_found_and_calibrates(temperature: float) -> None:
    logits, classes = drawn(temperature)
    found = fit_temperature(logits, classes)
    assert found == pytest.approx(temperature, rel=0.03)
    assert calibration_error(softmax(logits / found), classes) < 0.012
    held = held_out(logits, np.eye(3, dtype=bool)[classes])
    assert assess.temperature(held) == pytest.approx(found, rel=1e-3)
    assert held.divided(found).loss <= held.loss


def flags(classes: list[int], count: int = 2) -> np.ndarray:
    return np.eye(count, dtype=bool)[classes]


@pytest.mark.parametrize(
    ("rows", "labels", "texts", "parts", "held"),
    [
        *((100, 2, 50, 5, 100), (499, 2, 250, 5, 499)),
        (600, 2, 300, 1, 60),  # of very many a tenth, once
        # Few texts a label:
        *((800, 200, 800, 4, 800), (510, 170, 510, 3, 510), (600, 2, 6, 3, 600)),
    ],
)
def test_every_row_is_held_out_once_and_equal_texts_together(
    rows: int, labels: int, texts: int, parts: int, held: int
) -> None:
    groups = [i % texts for i in range(rows)]
    classes = [group % labels for group in groups]
    targets = flags(classes, labels)
    found, again = (assess.splits(targets, groups, seed=1, most=500) for _ in range(2))
    rows_held = [part.held.tolist() for part in found]
    assert rows_held == [part.held.tolist() for part in again]
    assert len(found) == parts
    assert len(set().union(*rows_held)) == sum(map(len, rows_held)) == held
    for part in found:
        assert sorted([*part.train, *part.held]) == list(range(rows))
        assert not {groups[i] for i in part.train} & {groups[i] for i in part.held}
        assert {classes[i] for i in part.train} == set(classes)


def held_out(
    logits: np.ndarray, targets: np.ndarray | list[list[bool]], **options: bool
) -> HeldOut:
    """Rows 10, 11, .. of two folds in turn."""
    rows = np.arange(len(logits))
    return HeldOut(rows + 10, logits, np.asarray(targets), rows % 2, **options)


def made(margins: Sequence[float], right: list[bool]) -> HeldOut:
    """Two classes; the first is answered with these margins."""
    logits = np.stack([np.array(margins), np.zeros(len(margins))], axis=1)
    return held_out(logits, flags([0 if one else 1 for one in right]))


def test_scores() -> None:
    held = made([4, 3, 2, 1], [True, True, False, True])
    assert held.score == 0.75
    assert held.deviation == pytest.approx(np.std([0.5, 1.0], ddof=1))
    assert risk_coverage(held) == [(1.0, 0.75), (0.9, 0.75), (0.8, 2 / 3), (0.5, 1.0)]
    assert suspects(held) == [(12, 0)]
    assert held.error == pytest.approx(np.sqrt(0.75 * 0.25 / 4))
    half = held.only(np.array([99, 12, 13]))
    assert (half.rows.tolist(), half.score, half.folds.tolist()) == ([12, 13], 0.5, [0, 1])


def test_a_class_that_no_row_has_and_none_is_answered_has_no_f1() -> None:
    """A test file may hold some of the labels only: the others counted as F1 of 0."""
    targets = flags([0, 0, 1, 1], 4)
    assert held_out(np.where(targets, 3.0, 0.0), targets).macro == 1.0
    expected = f1_score(targets.argmax(axis=1), [0, 0, 1, 2], average="macro")
    assert held_out(np.eye(4)[[0, 0, 1, 2]], targets).macro == pytest.approx(expected)


@pytest.mark.parametrize("multi_label", [False, True])
def test_balanced_classes_count_the_same(multi_label: bool) -> None:
    rng = np.random.default_rng(0)
    targets = flags([0] * 40 + [1] * 8 + [2] * 2, 3)
    logits = rng.normal(size=(50, 3)) + targets
    held = held_out(logits, targets, multi_label=multi_label, balanced=True)
    assert held.metric == "balanced accuracy"
    if multi_label:
        sides = [(t, logits[:, c][targets[:, c] == t]) for c in range(3) for t in (True, False)]
        right = [np.mean((scores > 0) == have) for have, scores in sides]
        losses = [np.mean(np.log1p(np.exp(scores * (1 - 2 * have)))) for have, scores in sides]
    else:
        best = logits.argmax(axis=1)
        right = [np.mean(best[targets[:, c]] == c) for c in range(3)]
        chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        losses = [-np.log(chances[targets[:, c], c]).mean() for c in range(3)]
        counts = np.array([40, 8, 2])
        spread = held.score * (1 - held.score) * (1 / counts).sum() / 9
        assert held.error == pytest.approx(np.sqrt(spread))
    assert held.score == pytest.approx(np.mean(right))
    assert held.loss == pytest.approx(np.mean(losses))


def test_the_threshold_reaches_the_precision() -> None:
    """All of the first 20 right: Wilson's one-sided lower limit is 20 / (20 + 0.842^2); 39 of 40 have another."""
    margins = np.arange(40, 0, -1) / 10
    held = made(margins.tolist(), [i != 20 for i in range(40)])
    first, every = 20 / (20 + 0.8416**2), 0.9436
    assert most_precise(held) == pytest.approx(first, abs=1e-4)
    assert assess.threshold(held, first - 1e-3) == pytest.approx(1 / (1 + np.exp(-margins[19])))
    assert assess.threshold(held, every - 1e-3) == pytest.approx(1 / (1 + np.exp(-margins[39])))
    assert assess.threshold(held, first + 1e-3) is None
    assert answered(held, 1 / (1 + np.exp(-margins[24]))) == (25, 24)
    assert answered(held, 1.0) == (0, 0)
    # Rows of equal probability are answered together.
    tied = [True] * 20 + [False] * 5
    assert assess.threshold(made([3] * 25, tied), 0.9) is None
    held = made([4] * 10 + [3] * 25, [True] * 10 + tied)
    assert assess.threshold(held, 0.9) == pytest.approx(1 / (1 + np.exp(-4)))
    assert assess.threshold(held, 0.75) == pytest.approx(1 / (1 + np.exp(-3)))


def test_several_labels() -> None:
    """A label of probability one half is answered, as the bundle does; the surest answer is sure of each label."""
    logits = np.array([[3.0, -2.0, -1.0], [1.0, 2.0, -4.0]])
    targets = np.array([[True, False, False], [False, True, False]])
    held = held_out(logits, targets, multi_label=True)
    assert held.score == pytest.approx(0.8)  # two of three answers right, no label missed
    assert held.right.tolist() == [True, False]
    assert suspects(held) == [(11, 0)]
    half = held_out(np.array([[0.0, -1e-9], [1.0, 0.0]]), flags([0, 1]), multi_label=True)
    assert half.answers.tolist() == [[True, False], [True, True]]
    empty = [[False, False], [True, False]]
    none_first = held_out(np.array([[-4.0, -4.0], [9.0, 0.1]]), empty, multi_label=True)
    assert risk_coverage(none_first) == [(1.0, 0.5), (0.9, 0.5), (0.8, 0.5), (0.5, 1.0)]

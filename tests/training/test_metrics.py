"""Metrics, the temperature and the calibration error; scores of a split and where they are kept."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from heedful.runtime.answers import softmax
from heedful.training import assess, checkpoint
from heedful.training.assess import HeldOut
from heedful.training.errors import ConfigError, DataError
from heedful.training.metrics import Score, fit_temperature, mse, ndcg, pearson, spearman
from heedful.training.tasks.base import UNLABELLED, Example, Source, Task
from tools.scoring import measure, record_score
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
    rows = np.arange(len(classes))
    held = HeldOut(rows, logits, np.eye(3, dtype=bool)[classes], 0 * rows)
    assert assess.temperature(held) == pytest.approx(found, rel=1e-3)


def test_the_calibration_error_is_that_of_a_loop() -> None:
    logits, classes = drawn(3.0)
    probabilities = softmax(logits)[:500]
    probabilities[0] = 1.0, 0.0, 0.0  # the last bin includes its end
    expected = 0.0
    for bin_ in range(15):
        inside = [
            (p.max(), p.argmax() == c)
            for p, c in zip(probabilities, classes[:500], strict=True)
            if min(int(p.max() * 15), 14) == bin_
        ]
        if inside:
            confidence, right = np.mean(inside, axis=0)
            expected += len(inside) / 500 * abs(confidence - right)
    assert calibration_error(probabilities, classes[:500]) == pytest.approx(expected)
    assert calibration_error(np.eye(2)[[0, 1]], np.array([0, 1])) == 0.0


class Always:
    """A predictor that gives one answer."""

    def __init__(self, answer: float = 1) -> None:
        self.answer = answer

    def predict(self, examples: Sequence[Example], task: Task) -> npt.NDArray[Any]:
        return np.full(len(examples), self.answer)


def source(name: str, *labels: float) -> Source:
    return Source(name, "", "", lambda _: [Example((name,), label) for label in labels])


def test_what_is_measured_and_what_is_refused(tmp_path: Path) -> None:
    """Pairs without a label are not scored, a model of other classes and an empty split are refused."""
    train = source("first", 1, 0), source("second", UNLABELLED, 1, 1, UNLABELLED)
    dev, empty = source("third", 0, 1), source("none")
    task = Task("toy", "classification", ("no", "yes"), train, dev, empty)
    score = measure(task, "train", tmp_path, Always())[0]
    assert (score.dataset, score.rows, score.value) == ("first and second", 4, 0.75)
    assert measure(task, "dev", tmp_path, Always())[0].value == 0.5
    with pytest.raises(ConfigError, match="never answers no, yes, the labels of toy"):
        measure(task, "dev", tmp_path, Always(-1))
    with pytest.raises(DataError, match="toy: its test split has no example"):
        measure(task, "test", tmp_path, Always())


def test_a_score_replaces_that_of_its_own_split(tmp_path: Path) -> None:
    splits = (("dev", 0.25), ("test", 0.5), ("dev", 0.75))
    scores = [Score("toy", split, "accuracy", value, 4) for split, value in splits]
    for score in scores:
        record_score(score, tmp_path)
    found = json.loads((tmp_path / checkpoint.SCORES).read_text())
    assert found == [score.as_dict() for score in scores[1:]]

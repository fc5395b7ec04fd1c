"""Temperature and calibration error against a loop and against numbers drawn with a known temperature."""

import numpy as np
import pytest

from heedful.runtime.answers import softmax
from heedful.training.metrics import fit_temperature
from tools.suites.figures import calibration_error


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


def test_the_error_is_that_of_a_loop() -> None:
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
            sure = float(np.mean([p for p, _ in inside]))
            right = float(np.mean([r for _, r in inside]))
            expected += len(inside) / 500 * abs(sure - right)
    assert calibration_error(probabilities, classes[:500]) == pytest.approx(expected)
    assert calibration_error(np.eye(2)[[0, 1]], np.array([0, 1])) == 0.0

"""Learning-rate schedules and the moving average of the weights."""

import numpy as np
import pytest
import torch
from torch import nn

from heedful.training.optimise import make_schedule, moving_average


def test_the_average_soon_forgets_its_start() -> None:
    """A decay of .999 alone would still be at 1 - .999 ** 20 = 2 % of the way after 20 updates."""
    model = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(model.weight)
    average = moving_average(model, 0.999)
    assert average is not None
    average.update_parameters(model)
    nn.init.ones_(model.weight)
    for _ in range(20):
        average.update_parameters(model)
    assert next(average.parameters()).item() > 0.9
    average = moving_average(model, 0.5)  # which is below what the first updates may have
    assert average is not None
    average.update_parameters(model)
    nn.init.zeros_(model.weight)
    for _ in range(20):
        average.update_parameters(model)
    assert 0 <= next(average.parameters()).item() < 1e-4


class Ticks(torch.optim.SGD):
    """An optimiser of one weight."""

    def __init__(self) -> None:
        super().__init__([torch.nn.Parameter(torch.zeros(1))], lr=1.0)


@pytest.mark.parametrize("schedule", ["cosine", "constant", "halve"])
def test_rates_rise_and_then_follow_their_schedule(schedule: str) -> None:
    optimiser = Ticks()
    rates = make_schedule(optimiser, schedule, 0.2, 20)
    found = []
    for _ in range(20):
        found.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        rates.step()
    np.testing.assert_allclose(found[:4], [0.25, 0.5, 0.75, 1.0])
    if schedule == "cosine":
        expected = [(1 + np.cos(np.pi * (step - 4) / 16)) / 2 for step in range(4, 20)]
    else:
        expected = [1.0] * 16
    np.testing.assert_allclose(found[4:], expected)

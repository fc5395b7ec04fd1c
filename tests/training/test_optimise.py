"""Learning-rate schedules and the moving average of the weights."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from heedful.training.config import OptimiserConfig, Paths, RunConfig
from heedful.training.model import TrainingModel, make_model
from heedful.training.objectives import make_objective
from heedful.training.optimise import Optimisation, make_optimisers, make_schedule, moving_average
from heedful.training.prepare import Prepared, prepare
from heedful.training.tasks import get
from tests.training.conftest import changed


def prepared(config: RunConfig, paths: Paths) -> tuple[TrainingModel, Prepared]:
    """A model of `config` before its first step, and its data."""
    task = get(config.task)
    where: dict[str, Any] = {"pipeline": paths.parser, "cache": paths.cache}
    objective = make_objective(task.kind, config, classes=len(task.labels), **where)
    examples = [one for source in task.train for one in source.read(paths.data)]
    dev = {task.name: task.dev.read(paths.data)}
    inputs = prepare(config, task, objective, examples, dev, paths)
    torch.manual_seed(config.seed)
    return make_model(config, task.kind, len(task.labels), inputs.words), inputs


@pytest.mark.parametrize("name", ["adam", "sgd"])
def test_the_l2_penalty_is_that_of_the_loss(config: RunConfig, paths: Paths, name: str) -> None:
    def trained(**decay: float) -> list[Tensor]:
        """The layers after three steps down the same loss."""
        optimiser = OptimiserConfig.model_validate({"name": name, "rate": 0.1, **decay})
        model, inputs = prepared(config, paths)
        model.eval()  # no dropout
        first, *_ = make_optimisers(*model.parameter_groups(None), optimiser)
        layers = [p for group in first.param_groups for p in group["params"]]
        sides, targets = next(inputs.train.batches(8, np.random.default_rng(0)))
        for _ in range(3):
            loss = functional.cross_entropy(model(sides), torch.from_numpy(targets))
            if not decay:
                loss = loss + 0.3 / 2 * torch.stack([p.square().sum() for p in layers]).sum()
            first.zero_grad()
            loss.backward()
            first.step()
        return layers

    for ours, explicit in zip(trained(weight_decay=0.3), trained(), strict=True):
        torch.testing.assert_close(ours, explicit, atol=2e-5, rtol=1e-3)


def test_a_step_is_no_longer_than_the_clipped_gradient(config: RunConfig, paths: Paths) -> None:
    model, inputs = prepared(config, paths)
    sgd = {"name": "sgd", "rate": 1.0, "momentum": 0.0, "clip": 0.01}
    optimisation = Optimisation.of(model, changed(config, optimiser=sgd), 1)
    layers = [p for group in optimisation.optimisers[0].param_groups for p in group["params"]]
    before = [p.detach().clone() for p in layers]
    sides, targets = next(inputs.train.batches(8, np.random.default_rng(0)))
    optimisation.step(1e6 * functional.cross_entropy(model(sides), torch.from_numpy(targets)), 0)
    moves = [(now - then).norm() for now, then in zip(layers, before, strict=True)]
    assert torch.stack(moves).norm().item() == pytest.approx(0.01, rel=1e-3)


def test_a_head_with_batch_norm_learns_from_mixed_lengths(config: RunConfig, paths: Paths) -> None:
    """Encoded in parts of similar lengths, a batch has the same vectors in the same order."""
    dsa = {"name": "dsa", "config": {"layers": 1, "size": 6, "dropout": 0.0, "word_dropout": 0.0}}
    plain, _ = prepared(config, paths)
    assert not plain.mixed
    model, inputs = prepared(changed(config, encoder=dsa), paths)
    assert model.mixed
    ((side, *_), _), *_ = replace(inputs.train, mixed=True).batches(24, np.random.default_rng(1))
    assert len(set(side.lengths.tolist())) > 1
    whole, parts = model.eval().encode(side), model.train().encode(side)
    torch.testing.assert_close(parts, whole, atol=1e-5, rtol=0)


def test_averaged_weights_have_their_own_statistics(config: RunConfig, paths: Paths) -> None:
    """What batch norm subtracts from the data is the data's mean under the averaged weights, without dropout."""
    dsa = {"name": "dsa", "config": {"layers": 1, "size": 6, "dropout": 0.5}}
    config = changed(config, encoder=dsa, optimiser={"batch": 24, "ema_decay": 0.9})
    model, inputs = prepared(config, paths)
    optimisation = Optimisation.of(model, config, 1)
    assert optimisation.average
    for weight in optimisation.evaluated.parameters():
        torch.nn.init.normal_(weight)  # far from the live weights
    optimisation.estimate_statistics(inputs.train, config)
    (norm,) = (one for one in optimisation.evaluated.modules() if isinstance(one, nn.BatchNorm1d))
    read: list[Tensor] = []
    with norm.register_forward_pre_hook(lambda _, inputs: read.append(inputs[0])), torch.no_grad():
        (sides, _), *others = inputs.train.batches(24, np.random.default_rng(1))
        assert not others
        optimisation.evaluated.eval()(sides)
    assert norm.running_mean is not None
    torch.testing.assert_close(norm.running_mean, read[0].mean(0))
    assert (norm.running_mean.abs() > 0.01).any()


def test_the_average_soon_forgets_its_start() -> None:
    """A decay of .999 alone would still be at 1 - .999 ** 20 = 2 % of the way after 20 updates."""
    for decay, start, end, near in ((0.999, 0.0, 1.0, 0.1), (0.5, 1.0, 0.0, 1e-4)):
        model = nn.Linear(1, 1, bias=False)
        nn.init.constant_(model.weight, start)
        average = moving_average(model, decay)
        average.update_parameters(model)
        nn.init.constant_(model.weight, end)
        for _ in range(20):
            average.update_parameters(model)
        assert 0 <= abs(next(average.parameters()).item() - end) < near


@pytest.mark.parametrize("schedule", ["cosine", "linear", "halve"])
def test_rates_rise_and_then_follow_their_schedule(schedule: str) -> None:
    optimiser = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    rates = make_schedule(optimiser, schedule, 0.2, 20)
    found = []
    for _ in range(20):
        found.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        rates.step()
    np.testing.assert_allclose(found[:4], [0.25, 0.5, 0.75, 1.0])
    after = np.arange(16) / 16
    expected = {"cosine": (1 + np.cos(np.pi * after)) / 2, "linear": 1 - after, "halve": after**0}
    np.testing.assert_allclose(found[4:], expected[schedule])

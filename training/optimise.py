"""Optimisers, schedules of their learning rates, and the moving average of the weights."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from heedful.training.checkpoint import Stateful
from heedful.training.config import Device, OptimiserConfig, RunConfig
from heedful.training.data import Batches, Examples
from heedful.training.errors import ConfigError
from heedful.training.model import Trainable

Tensors = tuple[Tensor, ...] | list[Tensor]
STATISTICS_BATCHES = 100
AVERAGE_EVERY = 4
"""Steps between two updates of the moving average, which are expensive for the table of word vectors."""


@dataclass(frozen=True, slots=True)
class Optimisation:
    """A model with its optimisers, their schedules and the moving average."""

    model: nn.Module
    optimisers: list[Optimizer]
    schedules: list[LambdaLR]
    average: AveragedModel | None
    clip: float

    @classmethod
    def of(cls, model: Trainable, config: RunConfig, steps: int) -> Self:
        """`steps` is the number of batches in all epochs."""
        optimiser = config.optimiser
        optimisers = make_optimisers(*model.parameter_groups(config.transformer), optimiser)
        schedules = [
            make_schedule(part, optimiser.schedule, optimiser.warmup, steps) for part in optimisers
        ]
        average = moving_average(model, optimiser.ema_decay) if optimiser.ema_decay else None
        return cls(model, optimisers, schedules, average, optimiser.clip)

    @property
    def evaluated(self) -> Trainable:
        """The model for dev scores and export: the averaged one if there is one."""
        return cast(Trainable, self.average.module if self.average else self.model)

    def step(self, loss: Tensor, number: int) -> None:
        """One optimiser step; `number` counts the steps of an epoch."""
        for optimiser in self.optimisers:
            optimiser.zero_grad()
        loss.backward()
        dense = [p for group in self.optimisers[0].param_groups for p in group["params"]]
        nn.utils.clip_grad_norm_(dense, self.clip)
        for optimiser, schedule in zip(self.optimisers, self.schedules, strict=True):
            optimiser.step()
            schedule.step()
        if self.average and number % AVERAGE_EVERY == 0:
            self.average.update_parameters(self.model)

    def estimate_statistics(self, examples: Batches, config: RunConfig) -> None:
        """Estimate the batch-norm statistics of the averaged weights: AveragedModel copies those of the live weights.

        They are means over STATISTICS_BATCHES of the training data without dropout, as in dev and test. torch's
        update_bn leaves dropout on, which changes the distance of two sentences, an input of batch norm.
        """
        modules = self.evaluated.modules()
        norms = [module for module in modules if isinstance(module, nn.BatchNorm1d)]
        if not self.average or not norms:
            return
        self.evaluated.eval()
        for norm in norms:
            norm.reset_running_stats()
            norm.momentum = None  # the mean over all batches
            norm.train()
        rng = np.random.default_rng(config.seed)
        if isinstance(examples, Examples):
            examples = replace(examples, subword_dropout=0.0)
        batches = examples.batches(config.optimiser.batch, rng)
        with torch.no_grad():
            for sides, _ in islice(batches, STATISTICS_BATCHES):
                self.evaluated(sides)

    def halve_rates(self) -> None:
        for schedule in self.schedules:
            schedule.base_lrs = [rate / 2 for rate in schedule.base_lrs]

    def parts(self) -> dict[str, Stateful]:
        """The parts of a checkpoint, by name."""
        parts: dict[str, Stateful] = {"model": self.model}
        parts |= {f"optimiser{i}": part for i, part in enumerate(self.optimisers)}
        parts |= {f"schedule{i}": part for i, part in enumerate(self.schedules)}
        return parts | ({"average": self.average} if self.average else {})


def require_finite(loss: float, epoch: int, config: Path, rates: str) -> None:
    """Raise ConfigError for NaN or infinity: no later step makes the weights finite again."""
    if not math.isfinite(loss):
        raise ConfigError(f"{config}: the loss is {loss} in epoch {epoch}: lower {rates}")


@contextmanager
def enough_memory(config: Path) -> Iterator[None]:
    """Raise ConfigError where the enclosed code needs more memory than the machine or its GPU has."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        # For the CPU's memory, and for a size beyond 64 bits, torch raises a plain RuntimeError.
        messages = ("can't allocate memory", "Storage size calculation overflowed")
        known = isinstance(error, MemoryError | torch.OutOfMemoryError)
        if not (known or any(message in str(error) for message in messages)):
            raise
        raise ConfigError(
            f"{config}: this needs more memory than there is: make the sizes in encoder.config, head.hidden, "
            "words.subword_rows, max_tokens or the batch smaller"
        ) from error


def require_device(device: Device) -> None:
    """Raise ConfigError where `device` is a GPU and torch sees none, before minutes of parsing."""
    if device == "cuda" and not torch.cuda.is_available():
        raise ConfigError("device is cuda, but torch sees no GPU: train with --device cpu")


def make_optimisers(
    dense: list[dict[str, Any]], words: list[nn.Parameter], config: OptimiserConfig
) -> list[Optimizer]:
    """An optimiser of the dense parameters and, where there are any, a sparse Adam of the tables of word vectors.

    Adam and SGD add `weight_decay` times a weight to its gradient: the penalty is half of that times its square, in
    the loss.
    """
    rate, decay = config.rate, config.weight_decay
    optimisers: list[Optimizer] = []
    if config.name == "adam":
        optimisers.append(torch.optim.Adam(dense, lr=rate, weight_decay=decay))
    elif config.name == "adamw":
        optimisers.append(torch.optim.AdamW(dense, lr=rate, weight_decay=decay))
    else:
        momentum = config.momentum
        optimisers.append(torch.optim.SGD(dense, lr=rate, momentum=momentum, weight_decay=decay))
    if words:
        optimisers.append(torch.optim.SparseAdam(words, lr=config.word_lr))
    return optimisers


def make_schedule(optimiser: Optimizer, schedule: str, warmup: float, steps: int) -> LambdaLR:
    """Linear warm-up over the first `warmup` of all steps, then a cosine or a line to zero, or constant."""
    rise = max(1, round(warmup * steps))

    def factor(step: int) -> float:
        if step < rise:
            return (step + 1) / rise
        share = min(1.0, (step - rise) / max(1, steps - rise))
        if schedule == "linear":
            return 1 - share
        return 0.5 * (1 + math.cos(math.pi * share)) if schedule == "cosine" else 1.0

    return LambdaLR(optimiser, factor)


def moving_average(model: nn.Module, decay: float) -> AveragedModel:
    """An exponential moving average that decays faster at first."""

    def update(averaged: Tensors, current: Tensors, count: Tensor | int) -> None:
        now = min(decay, (1 + float(count)) / (10 + float(count)))
        get_ema_multi_avg_fn(now)(averaged, current, count)

    return AveragedModel(model, multi_avg_fn=update)

"""One training run, read from top to bottom: data, model, epochs, dev score, checkpoints."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from rich.console import Console
from rich.progress import track

from heedful.files.atomic import write_json
from heedful.training import checkpoint
from heedful.training.checkpoint import Progress
from heedful.training.config import Paths, RunConfig, validate
from heedful.training.metrics import dev_metric
from heedful.training.objectives import dev_score
from heedful.training.optimise import Optimisation, require_device, require_finite
from heedful.training.restore import read_record
from heedful.training.setup import Setup, set_up
from heedful.training.source_commit import source_commit
from heedful.training.tasks import get as get_task
from heedful.training.tasks.base import Task

PROGRESS_SECONDS = 60.0
"""Seconds between two lines of a log about an epoch's progress."""
CHECKPOINT_SECONDS = 600.0
"""Seconds between two checkpoints within an epoch, so that a run of long epochs can continue from them."""


def train(
    config: RunConfig,
    paths: Paths,
    *,
    resume: bool,
    console: Console,
    task: Task | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> dict[str, Any]:
    """Train to the last epoch or until patience ends; returns the record written to `run.json`.

    `task` is given where `config.task` is not one of `training.tasks`. Deterministic for a seed and a
    number of threads, also when it is interrupted, within an epoch too, and resumed. Raises ConfigError where the
    folder holds another run or this one with another parser or other words, the device is missing or the loss is
    not finite, DataMissing, ParserError, RunDamaged.
    """
    require_device(config.device)
    task = task or get_task(config.task)
    commit = source_commit()  # read now: the source may change during the run
    torch.manual_seed(config.seed)
    state = checkpoint.last_state(paths.run, config, validate, resume=resume)
    if state and (paths.run / checkpoint.RECORD).exists():
        console.print(f"{paths.run} is finished: nothing is left to train")
        return read_record(paths.run)  # unchanged: it names the source of the training

    run = set_up(config, task, paths, state)
    size = config.optimiser.batch
    optimisation = Optimisation.of(run.model, config, config.epochs * run.train.steps(size))
    progress = checkpoint.restore(state, optimisation.parts()) if state else Progress()
    console.print(_summary(task, run, progress))

    def save(progress: Progress) -> None:
        fingerprint = run.parser.get("fingerprint", "")
        checkpoint.save_last(paths.run, optimisation.parts(), progress, config, fingerprint)

    started = time.monotonic()
    while progress.epoch < config.epochs and progress.epoch - progress.best_epoch < config.patience:
        epoch = progress.epoch + 1
        # Seeded by epoch: a resumed epoch drops the same units as an uninterrupted one.
        torch.manual_seed(config.seed * 1000 + epoch)
        if state and progress.step:
            checkpoint.restore_generators(state)
        rng = np.random.default_rng([config.seed, epoch])
        processor_start = time.process_time()
        batches = _tracked(run.train.batches(size, rng), run.train.steps(size), epoch, console)
        total = _train_epoch(optimisation, run, batches, config, progress, checkpoint_seconds, save)
        loss = total / len(run.train)
        require_finite(loss, epoch, paths.config, "optimiser.rate")
        processor = round(time.process_time() - processor_start, 1)
        optimisation.estimate_statistics(run.train, config)
        scores = {
            name: dev_score(run.objective, task.kind, optimisation.evaluated, examples)
            for name, examples in run.dev.items()
        }
        score, *_ = scores.values()
        if config.optimiser.schedule == "halve" and loss >= progress.lowest_loss:
            optimisation.halve_rates()

        progress = progress.after_epoch(loss, score)
        better = progress.best_epoch == epoch
        if better:
            checkpoint.save_best(paths.run, optimisation.evaluated.trained_state_dict())
        save(progress)
        times = {"seconds": round(time.monotonic() - started, 1), "processor_seconds": processor}
        extra = {name: scores[name] for name in config.extra_dev_tasks}
        checkpoint.log(paths.run, {"epoch": epoch, "loss": loss, "dev": score, **extra, **times})
        more = "".join(f", {name} {value:.4f}" for name, value in extra.items())
        star = " *" if better else ""
        console.print(f"epoch {epoch}: loss {loss:.4f}, dev {score:.4f}{more}{star}")

    facts = {"commit": commit, "threads": torch.get_num_threads()}
    record = _record(config, paths, task, run, progress) | facts
    write_json(paths.run / checkpoint.RECORD, record)
    return record


def _train_epoch(
    optimisation: Optimisation,
    run: Setup,
    batches: Iterator[tuple[list[Any], npt.NDArray[Any]]],
    config: RunConfig,
    progress: Progress,
    checkpoint_seconds: float,
    save: Callable[[Progress], None],
) -> float:
    """Train on the epoch's batches from `progress.step` on; returns the sum of the examples' losses."""
    optimisation.model.train()
    total = progress.loss
    half = config.optimiser.precision == "bfloat16"
    saved = time.monotonic()
    for step, (sides, targets) in enumerate(batches):
        if step < progress.step:
            continue
        target = torch.from_numpy(targets).to(config.device)
        with torch.autocast(config.device, torch.bfloat16, enabled=half):
            loss = run.objective.loss(run.model, sides, target)
        optimisation.step(loss, step)
        total += loss.item() * len(targets)
        if time.monotonic() - saved > checkpoint_seconds:
            save(replace(progress, step=step + 1, loss=total))
            saved = time.monotonic()
    return total


def _tracked(batches: Iterator[Any], steps: int, epoch: int, console: Console) -> Iterator[Any]:
    """The batches, while the epoch's progress is shown: a bar in a terminal, else a line a minute."""
    if console.is_terminal:
        yield from track(batches, f"epoch {epoch}", steps, console=console, transient=True)
        return
    printed = time.monotonic()
    for step, batch in enumerate(batches):
        if time.monotonic() - printed > PROGRESS_SECONDS:
            printed = time.monotonic()
            console.print(f"{step / steps:.0%} of epoch {epoch}")
        yield batch


def _summary(task: Task, run: Setup, progress: Progress) -> str:
    """The line printed before the first epoch."""
    weights = sum(p.numel() for p in run.model.encoder_parameters())
    return (
        f"{task.name}: {len(run.train)} train, {len(run.dev[task.name])} dev, {run.reads}, "
        f"{weights:,} weights, from epoch {progress.epoch + 1}"
    )


def _record(
    config: RunConfig, paths: Paths, task: Task, run: Setup, progress: Progress
) -> dict[str, Any]:
    """The facts of the training for `run.json` and the model card."""
    metric, _ = dev_metric(task.kind)
    return {
        "config": config.model_dump(mode="json"),
        "file": paths.config.as_posix(),
        "task": task.answers,
        "kind": task.kind,
        "labels": task.labels,
        "parser": run.parser,
        "dev": {
            "dataset": task.dev.name,
            "metric": metric,
            "value": progress.best_score,
            "rows": len(run.dev[task.name]),
        },
        "epochs": progress.best_epoch,
        "data": run.learned,
    }

"""One training run, read from top to bottom: data, model, epochs, dev score, checkpoints."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from rich.console import Console
from rich.progress import track

from heedful.files.atomic import write_file, write_json
from heedful.text.batch import Batch
from heedful.text.pieces import Lexicon
from heedful.training import checkpoint, composed
from heedful.training.checkpoint import Progress
from heedful.training.config import Paths, RunConfig, validate
from heedful.training.data import Examples, subsample
from heedful.training.encoded import encoded
from heedful.training.errors import ConfigError
from heedful.training.metrics import dev_metric
from heedful.training.model import TrainingModel, make_model
from heedful.training.objectives import Objective, dev_score, make_objective
from heedful.training.optimise import Optimisation, require_device, require_finite
from heedful.training.prepare import Prepared, prepare, start_context
from heedful.training.restore import read_record
from heedful.training.source_commit import source_commit
from heedful.training.start import begin_with
from heedful.training.tasks import get as get_task
from heedful.training.tasks.base import Task

SILENT_SECONDS = 60.0
"""How long a log goes without a line about the epoch."""


def train(
    config: RunConfig, paths: Paths, *, resume: bool, console: Console, task: Task | None = None
) -> dict[str, Any]:
    """Train to the last epoch or until patience ends; returns the record written to `run.json`.

    `task` is given where `config.task` is not one of `training.tasks`. Deterministic for a seed and a
    number of threads, also across an interruption and `resume`. Raises ConfigError where the folder
    holds another run or this one with another parser or other words, the device is not there or the loss is not
    finite, DataMissing, ParserError, RunDamaged.
    """
    require_device(config.device)
    task = task or get_task(config.task)
    commit = source_commit()  # now: the source may change during the run
    torch.manual_seed(config.seed)
    state = checkpoint.last_state(paths.run, config, validate, resume=resume)
    if state and (paths.run / checkpoint.RECORD).exists():
        console.print(f"{paths.run} is finished: nothing is left to train")
        return read_record(paths.run)  # as it is: it names the source that the run was trained with

    parts = subsample([(one, one.read(paths.data)) for one in task.train], config.train_rows)
    examples = [example for _, found in parts for example in found]
    objective = make_objective(
        task.kind, config, classes=len(task.labels), pipeline=paths.parser, cache=paths.cache
    )
    inputs = prepare(config, task, objective, examples, paths)
    if state and state.get("parser", inputs.parser.fingerprint) != inputs.parser.fingerprint:
        raise ConfigError(
            f"{paths.run} was started with another parser than {paths.parser}: name that one with --parser"
        )
    lexicon_file = checkpoint.TOKENIZER if config.transformer else checkpoint.VOCAB
    _keep_lexicon(paths.run / lexicon_file, inputs.lexicon, resumed=state is not None)

    model = make_model(config, task.kind, len(task.labels), inputs.words)
    if model.mixed and min(config.optimiser.batch, len(inputs.train)) == 1:
        raise ConfigError(
            f"{paths.config}: the head of {config.encoder.name} has batch norm, which cannot train on one example at a "
            "time: set optimiser.batch to 2 or more, and train on more than one row"
        )
    start_context(model.sentence.encoder, inputs.words, inputs.train.rows.ids)
    learned = [
        {"name": one.name, "rows": len(found), "licence": one.licence, "note": one.note}
        for one, found in parts
    ]
    if config.init_from:
        earlier = begin_with(config, model, task, paths.run / lexicon_file)
        learned += [one for one in earlier if one not in learned]
    else:
        embedding = model.sentence.embedding
        composed.start(embedding, inputs.lexicon, seed=config.seed, device=config.device)
    if "words" in config.freeze:
        model.sentence.embedding.requires_grad_(False)
    model.to(config.device)
    train = inputs.train
    if {"encoder", "transformer"} <= set(config.freeze):
        half = config.optimiser.precision == "bfloat16"
        train = replace(train, rows=encoded(model, train.rows, paths.cache, half=half))
    steps = config.epochs * train.steps(config.optimiser.batch)
    optimisation = Optimisation.of(model, config, steps)
    progress = checkpoint.restore(state, optimisation.parts()) if state else Progress()
    console.print(_summary(config, task, model, inputs, progress))

    started = time.monotonic()
    while progress.epoch < config.epochs and progress.epoch - progress.best_epoch < config.patience:
        epoch = progress.epoch + 1
        # Seeded by epoch: a resumed epoch drops the same units as an uninterrupted one.
        torch.manual_seed(config.seed * 1000 + epoch)
        rng = np.random.default_rng([config.seed, epoch])
        before = time.process_time()
        batches = _batches(train, rng, config, model, f"epoch {epoch}", console)
        loss = _train_epoch(optimisation, objective, batches, config) / len(train)
        require_finite(loss, epoch, paths.config, "optimiser.rate")
        processor = round(time.process_time() - before, 1)
        optimisation.estimate_statistics(train, config)
        score = dev_score(objective, task.kind, optimisation.evaluated, inputs.dev)
        if config.optimiser.schedule == "halve" and loss >= progress.lowest_loss:
            optimisation.halve_rates()

        progress = progress.after_epoch(loss, score)
        better = progress.best_epoch == epoch
        if better:
            checkpoint.save(paths.run / checkpoint.BEST, optimisation.evaluated.learned())
        checkpoint.save_last(
            paths.run, optimisation.parts(), progress, config, inputs.parser.fingerprint
        )
        times = {"seconds": round(time.monotonic() - started), "processor_seconds": processor}
        checkpoint.log(paths.run, {"epoch": epoch, "loss": loss, "dev": score, **times})
        console.print(f"epoch {epoch}: loss {loss:.4f}, dev {score:.4f}{' *' if better else ''}")

    more = {"commit": commit, "threads": torch.get_num_threads()}
    record = _record(config, paths.config, task, learned, inputs, progress) | more
    write_json(paths.run / checkpoint.RECORD, record)
    return record


def _keep_lexicon(file: Path, lexicon: Lexicon, *, resumed: bool) -> None:
    """Write the run's words or pieces. Raises ConfigError where a resumed run had others."""

    def write(part: Path) -> None:
        lexicon.save(part)
        if resumed and file.exists() and file.read_bytes() != part.read_bytes():
            raise ConfigError(
                f"{file} lists other words than the texts and vectors have now: resume with the same "
                "--data, or name another --run"
            )

    write_file(file, write)


def _train_epoch(
    optimisation: Optimisation,
    objective: Objective,
    batches: Iterable[tuple[list[Batch], npt.NDArray[Any]]],
    config: RunConfig,
) -> float:
    """One pass over the batches; returns the sum of the examples' losses."""
    model = optimisation.model
    model.train()
    total = 0.0
    half = config.optimiser.precision == "bfloat16"
    for step, (sides, targets) in enumerate(batches):
        with torch.autocast(config.device, torch.bfloat16, enabled=half):
            loss = objective.loss(model, sides, torch.from_numpy(targets).to(config.device))
        optimisation.step(loss, step)
        total += loss.item() * len(targets)
    return total


def _batches(
    examples: Examples,
    rng: np.random.Generator,
    config: RunConfig,
    model: TrainingModel,
    title: str,
    console: Console,
) -> Iterator[tuple[list[Batch], npt.NDArray[Any]]]:
    """The examples in random order; shows how far it is: a bar in a terminal, else a line a minute."""
    size = config.optimiser.batch
    batches = examples.batches(size, rng, config.words.subword_dropout, mixed=model.mixed)
    steps = examples.steps(size)
    if console.is_terminal:
        yield from track(batches, title, steps, console=console, transient=True)
        return
    said = time.monotonic()
    for step, batch in enumerate(batches):
        if time.monotonic() - said > SILENT_SECONDS:
            said = time.monotonic()
            console.print(f"{step / steps:.0%} of {title}")
        yield batch


def _summary(
    config: RunConfig, task: Task, model: TrainingModel, inputs: Prepared, progress: Progress
) -> str:
    """The line printed before the first epoch."""
    weights = sum(p.numel() for p in model.sentence.encoder.parameters())
    unit = "pieces" if config.transformer else "words"
    return (
        f"{task.name}: {len(inputs.train)} train, {len(inputs.dev)} dev, {len(inputs.lexicon)} {unit}, "
        f"{weights:,} weights, from epoch {progress.epoch + 1}"
    )


def _record(
    config: RunConfig,
    file: Path,
    task: Task,
    learned: list[dict[str, Any]],
    inputs: Prepared,
    progress: Progress,
) -> dict[str, Any]:
    """What a model card says of the training."""
    metric, _ = dev_metric(task.kind)
    return {
        "config": config.model_dump(mode="json"),
        "file": file.as_posix(),
        "task": task.answers,
        "kind": task.kind,
        "labels": task.labels,
        "parser": {"name": inputs.parser.name, "fingerprint": inputs.parser.fingerprint},
        "dev": {
            "dataset": task.dev.name,
            "metric": metric,
            "value": progress.best_score,
            "rows": len(inputs.dev),
        },
        "epochs": progress.best_epoch,
        "data": learned,
    }

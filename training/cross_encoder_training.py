"""Fine-tuning all-MiniLM-L6-v2 as a classifier (`cross_encoder`): data, epochs, dev scores, checkpoints."""

from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.progress import track
from torch import nn
from torch.nn import functional

from heedful.files.atomic import write_json
from heedful.text.arrays import Ints
from heedful.training import checkpoint
from heedful.training.checkpoint import Progress
from heedful.training.config import Paths
from heedful.training.cross_encoder import (
    CrossEncoder,
    CrossEncoderConfig,
    Pieces,
    accuracy,
    validate,
)
from heedful.training.data import sorted_batches
from heedful.training.errors import ConfigError
from heedful.training.objectives import make_classes
from heedful.training.optimise import (
    AVERAGE_EVERY,
    make_schedule,
    moving_average,
    require_device,
    require_finite,
)
from heedful.training.restore import read_record
from heedful.training.source_commit import source_commit
from heedful.training.tasks import get as get_task
from heedful.training.tasks.base import Source, Task


def fine_tune(
    config: CrossEncoderConfig, paths: Paths, *, resume: bool, console: Console
) -> dict[str, Any]:
    """Train to the last epoch; returns the record, with the best dev accuracy.

    Deterministic for a seed, also across an interruption and `resume`. Raises ConfigError where the folder holds
    another run, the task has no classes, the device is not there or the loss is not finite, DataMissing, DataError,
    RunMissing for a teacher.
    """
    require_device(config.device)
    folder, data = paths.run, paths.data
    task = get_task(config.task)
    if not task.labels:
        raise ConfigError(f"{paths.config}: task: {task.name} has no classes: name another")
    state = checkpoint.last_state(folder, config, validate, resume=resume)
    if state and (folder / checkpoint.RECORD).exists():
        console.print(f"{folder} is finished: nothing is left to train")
        return read_record(folder)  # as it is: it names the source that the run was trained with
    commit = source_commit()
    examples = [one for source in task.train for one in source.read(data)]
    task.require("train", examples)
    pieces = Pieces.of([one.texts for one in examples], config.max_pieces)
    objective = make_classes(
        0.0, config.teacher, len(task.labels), pipeline=paths.parser, cache=paths.cache
    )
    targets = torch.from_numpy(objective.targets(examples)).to(config.device)
    devs = {name: get_task(name).dev.read(data) for name in (config.task, *config.also)}
    for name, found in devs.items():
        get_task(name).require("dev", found)

    torch.manual_seed(config.seed)
    model = CrossEncoder(len(task.labels), dropout=config.dropout, device=config.device)
    optimiser = torch.optim.AdamW(model.groups(config), weight_decay=config.weight_decay)
    steps = config.epochs * -(-len(examples) // config.batch)
    schedule = make_schedule(optimiser, config.schedule, config.warmup, steps)
    average = moving_average(model, config.average)
    kept: CrossEncoder = average.module if average else model  # type: ignore[assignment]
    parts: dict[str, checkpoint.Stateful] = {"model": model, "optimiser": optimiser}
    parts |= {"schedule": schedule} | ({"average": average} if average else {})
    progress = checkpoint.restore(state, parts) if state else Progress()
    console.print(f"{task.name}: {len(examples)} examples, from epoch {progress.epoch + 1}")

    half = config.precision == "bfloat16"
    while progress.epoch < config.epochs:
        epoch = progress.epoch + 1
        torch.manual_seed(config.seed * 1000 + epoch)  # as in loop.train
        groups = _shuffled(pieces, config, epoch)
        model.train()
        total = 0.0
        for step, group in enumerate(track(groups, f"epoch {epoch}", transient=True)):
            with torch.autocast(config.device, torch.bfloat16, enabled=half):
                logits = model(*pieces.collate(group, config.device))
            loss = functional.cross_entropy(logits.float(), targets[group])
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), config.clip)
            optimiser.step()
            schedule.step()
            if average and step % AVERAGE_EVERY == 0:
                average.update_parameters(model)
            total += loss.item() * len(group)
            if step % 200 == 0:
                console.print(f"  step {step} of {len(groups)}: loss {loss.item():.3f}")
        loss_of_epoch = total / len(examples)
        require_finite(loss_of_epoch, epoch, paths.config, "rate and head_rate")
        scores = {name: accuracy(kept, found, config) for name, found in devs.items()}
        progress = progress.after_epoch(loss_of_epoch, scores[config.task])
        if progress.best_epoch == epoch:
            checkpoint.save(folder / checkpoint.BEST, kept.state_dict())
        checkpoint.save_last(folder, parts, progress, config)
        checkpoint.log(folder, {"epoch": epoch, "loss": loss_of_epoch, **scores})
        console.print(f"epoch {epoch}: loss {loss_of_epoch:.4f}, dev {scores}")

    record = _record(config, task, commit, progress.best_score)
    write_json(folder / checkpoint.RECORD, record)
    return record


def _record(config: CrossEncoderConfig, task: Task, commit: str, dev: float) -> dict[str, Any]:
    return {
        "config": config.model_dump(mode="json"),
        "labels": task.labels,
        "commit": commit,
        "dev": dev,
        "data": [_card(one) for one in task.train],
    }


def _shuffled(pieces: Pieces, config: CrossEncoderConfig, epoch: int) -> list[Ints]:
    """The epoch's batches, each of examples of about one length."""
    rng = np.random.default_rng([config.seed, epoch])
    groups = sorted_batches(rng.permutation(len(pieces.lengths)), pieces.lengths, config.batch)
    rng.shuffle(groups)
    return groups


def _card(source: Source) -> dict[str, str]:
    return {"name": source.name, "licence": source.licence, "note": source.note}

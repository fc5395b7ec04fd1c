"""One training run, read from top to bottom: data, model, epochs, dev score, checkpoints."""

import json
import math
import subprocess
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
import torch
from rich.console import Console
from rich.progress import track
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from heedful.models.lama import LAMA
from heedful.models.registry import reads_trees
from heedful.models.sentence import Encoder
from heedful.text.parse import Parser
from heedful.text.pieces import Lexicon
from heedful.training import checkpoint, transformer, vectors, word2vec
from heedful.training.checkpoint import Progress
from heedful.training.config import OptimiserConfig, RunConfig
from heedful.training.data import Examples, Ints, Parsed, drawn, parse, vocabulary
from heedful.training.errors import ConfigError
from heedful.training.files import write_json, write_whole
from heedful.training.metrics import dev_metric
from heedful.training.model import Model, make_model
from heedful.training.objectives import Objective, dev_score, objective
from heedful.training.tasks import get as get_task
from heedful.training.tasks.base import Example, Source, Task

Tensors = tuple[Tensor, ...] | list[Tensor]
AVERAGE_EVERY = 4
"""Steps between two updates of the moving average: the table of word vectors makes each one dear."""


@dataclass(frozen=True, slots=True)
class Paths:
    """Where a run reads and writes."""

    run: Path
    data: Path
    parser: str
    cache: Path
    config: Path


class Stateful(Protocol):
    """What a checkpoint keeps and gives back."""

    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state_dict: dict[str, Any]) -> Any: ...


def train(
    config: RunConfig, paths: Paths, *, resume: bool, console: Console, task: Task | None = None
) -> dict[str, Any]:
    """Train to the last epoch or until patience ends; the record that goes to `run.json`.

    `task` is one that `training.tasks` does not know by `config.task`.

    Deterministic for a seed and a number of threads, also across an interruption and `resume`.
    Raises ConfigError where the folder holds another run, DataMissing, ParserError.
    """
    task = task or get_task(config.task)
    commit = _commit()  # now: the tree may change while the run goes on
    torch.manual_seed(config.seed)
    paths.run.mkdir(parents=True, exist_ok=True)
    last = paths.run / checkpoint.LAST
    if last.exists() and not resume:
        raise ConfigError(f"{paths.run} holds a run: --resume goes on with it, --run names another")
    state = checkpoint.load(last) if last.exists() else None
    # A field that came after the run began has its default there.
    if state and RunConfig.model_validate(state["config"]) != config:
        raise ConfigError(f"{paths.run} was begun with another configuration: name another --run")

    parts = drawn([(source, source.read(paths.data)) for source in task.train], config.train_rows)
    goal = objective(
        task.kind, config, classes=len(task.labels), pipeline=paths.parser, cache=paths.cache
    )
    train_set, dev_set, vocab, words, parser = _arrays(config, task, goal, parts, paths)
    file = checkpoint.TOKENIZER if config.transformer else checkpoint.VOCAB
    write_whole(paths.run / file, vocab.save)
    model = make_model(config, task.kind, len(task.labels), words)
    if isinstance(words, Tensor):
        _start_context(model.sentence.encoder, words, train_set.rows.ids)
    model.to(config.device)

    steps = config.epochs * train_set.steps(config.optimiser.batch)
    rate = config.transformer.rate if config.transformer else None
    optimisers = _optimisers(model, config.optimiser, rate)
    schedules = [_schedule(optimiser, config.optimiser, steps) for optimiser in optimisers]
    average = _average(model, config.optimiser.average)
    stateful: dict[str, Stateful] = {"model": model}
    stateful |= {f"optimiser{i}": part for i, part in enumerate(optimisers)}
    stateful |= {f"schedule{i}": part for i, part in enumerate(schedules)}
    stateful |= {"average": average} if average else {}

    progress = _restore(state, stateful) if state else Progress()
    parameters = sum(p.numel() for p in model.sentence.encoder.parameters())
    unit = "pieces" if config.transformer else "words"
    console.print(
        f"{task.name}: {len(train_set)} train, {len(dev_set)} dev, {len(vocab)} {unit}, "
        f"{parameters:,} weights, from epoch {progress.epoch + 1}"
    )
    started = time.monotonic()
    while progress.epoch < config.epochs and progress.epoch - progress.best_epoch < config.patience:
        epoch = progress.epoch + 1
        # A resumed epoch drops what an unbroken run would.
        torch.manual_seed(config.seed * 1000 + epoch)
        rng = np.random.default_rng([config.seed, epoch])
        loss = _epoch(
            model, goal, average, train_set, rng, optimisers, schedules, config, f"epoch {epoch}"
        )
        judged = cast(Model, average.module) if average else model
        score = dev_score(goal, task.kind, judged, dev_set)
        better = score > progress.best_score
        if config.optimiser.schedule == "halve" and loss >= progress.lowest_loss:
            for schedule in schedules:
                schedule.base_lrs = [rate / 2 for rate in schedule.base_lrs]
        progress = Progress(
            epoch=epoch,
            best_epoch=epoch if better else progress.best_epoch,
            best_score=max(score, progress.best_score),
            lowest_loss=min(loss, progress.lowest_loss),
        )
        if better:
            checkpoint.save(paths.run / checkpoint.BEST, judged.state_dict())
        _keep(last, stateful, progress, config)
        line = {
            "epoch": epoch,
            "loss": loss,
            "dev": score,
            "seconds": round(time.monotonic() - started),
        }
        with (paths.run / checkpoint.LOG).open("a") as log:
            log.write(json.dumps(line) + "\n")
        console.print(f"epoch {epoch}: loss {loss:.4f}, dev {score:.4f}{' *' if better else ''}")

    metric, _ = dev_metric(task.kind)
    record = {
        "config": config.model_dump(mode="json"),
        "file": paths.config.as_posix(),
        "task": task.name,
        "kind": task.kind,
        "labels": task.labels,
        "parser": {"name": parser.name, "fingerprint": parser.fingerprint},
        "dev": {
            "dataset": task.dev.name,
            "metric": metric,
            "value": progress.best_score,
            "rows": len(dev_set),
        },
        "epochs": progress.best_epoch,
        "data": [
            {
                "name": source.name,
                "rows": len(examples),
                "licence": source.licence,
                "note": source.note,
            }
            for source, examples in parts
        ],
        "commit": commit,
        "threads": torch.get_num_threads(),
    }
    write_json(paths.run / checkpoint.RECORD, record)
    return record


def _arrays(
    config: RunConfig,
    task: Task,
    goal: Objective,
    parts: list[tuple[Source, list[Example]]],
    paths: Paths,
) -> tuple[Examples, Examples, Lexicon, Tensor | nn.Module, Parser]:
    """Train and dev examples as ids and heads, the vocabulary, its (V, D) vectors (or a transformer that
    gives them) and the parser used.
    """
    parser = Parser.load(paths.parser)

    def parsed(examples: list[Example], *, tree: bool) -> Parsed:
        return parse(
            [text for example in examples for text in example.texts],
            pipeline=paths.parser,
            fingerprint=parser.fingerprint,
            max_tokens=config.max_tokens,
            tree=tree,
            cache_dir=paths.cache,
        )

    train = [example for _, examples in parts for example in examples]
    dev = task.dev.read(paths.data)
    tree = reads_trees(config.encoder.name, config.encoder_keywords())
    train_texts, dev_texts = parsed(train, tree=tree), parsed(dev, tree=tree)
    if config.transformer:
        module, pieces = transformer.load(config.transformer)
        train_set = Examples.of(train, train_texts.rows(pieces), goal.targets)
        return train_set, Examples.of(dev, dev_texts.rows(pieces)), pieces, module, parser
    background = (
        [parsed(source.read(paths.data), tree=False) for source in task.background]
        if config.words.background_min_count is not None
        else []
    )
    words: vectors.Source
    if config.words.vectors == "word2vec":
        words = word2vec.train([train_texts, *background], dim=config.words.dim, seed=config.seed)
    else:
        words = vectors.source(config.words.vectors, paths.data)
    vocab = vocabulary(
        train_texts.counts(),
        sum((texts.counts() for texts in background), Counter()),
        words.has,
        min_count=config.words.min_count,
        background_min_count=config.words.background_min_count,
    )
    table = vectors.initial(
        words.look_up(vocab.words),
        words.has(vocab.words),
        dim=config.words.dim,
        scale=config.words.scale,
        seed=config.seed,
    )
    return (
        Examples.of(train, train_texts.rows(vocab), goal.targets),
        Examples.of(dev, dev_texts.rows(vocab)),
        vocab,
        table,
        parser,
    )


def _start_context(encoder: Encoder, table: Tensor, ids: Ints) -> None:
    """LAMA's context begins with the mean of the corpus' word vectors."""
    if isinstance(encoder, LAMA) and encoder.context is not None:
        counts = torch.from_numpy(np.bincount(ids, minlength=len(table))).float()
        encoder.start_context(counts @ table / counts.sum())


def _optimisers(
    model: Model, config: OptimiserConfig, transformer_rate: float | None
) -> list[torch.optim.Optimizer]:
    """One for the layers and, unless it is frozen, a sparse Adam for the table of word vectors.

    A transformer's weights are dense: they are of the first, at a rate of their own.
    """
    words = [p for p in model.sentence.embedding.parameters() if p.requires_grad]
    table = {id(p) for p in model.sentence.embedding.parameters()}
    layers: list[dict[str, Any]] = [
        {"params": [p for p in model.parameters() if id(p) not in table]}
    ]
    if transformer_rate is not None and words:
        layers.append({"params": words, "lr": transformer_rate})
    rate, decay = config.rate, config.weight_decay
    optimisers: list[torch.optim.Optimizer] = []
    if config.name == "adam":
        optimisers.append(torch.optim.AdamW(layers, lr=rate, weight_decay=decay))
    elif config.name == "adadelta":
        optimisers.append(torch.optim.Adadelta(layers, lr=rate, weight_decay=decay))
    else:
        momentum = config.momentum
        optimisers.append(torch.optim.SGD(layers, lr=rate, momentum=momentum, weight_decay=decay))
    if words and transformer_rate is None:
        optimisers.append(torch.optim.SparseAdam(words, lr=config.word_rate))
    return optimisers


def _schedule(optimiser: torch.optim.Optimizer, config: OptimiserConfig, steps: int) -> LambdaLR:
    """Up in a line over the first `warmup` of all steps; then down along a cosine, or level."""
    rise = max(1, round(config.warmup * steps))

    def factor(step: int) -> float:
        if step < rise:
            return (step + 1) / rise
        if config.schedule != "cosine":
            return 1.0
        return 0.5 * (1 + math.cos(math.pi * min(1.0, (step - rise) / max(1, steps - rise))))

    return LambdaLR(optimiser, factor)


def _average(model: nn.Module, decay: float) -> AveragedModel | None:
    def update(averaged: Tensors, current: Tensors, count: Tensor | int) -> None:
        now = min(decay, (1 + float(count)) / (10 + float(count)))
        get_ema_multi_avg_fn(now)(averaged, current, count)

    return AveragedModel(model, multi_avg_fn=update) if decay else None


def _keep(path: Path, parts: Mapping[str, Stateful], progress: Progress, config: RunConfig) -> None:
    state = {name: part.state_dict() for name, part in parts.items()}
    checkpoint.save(
        path, {**state, "progress": asdict(progress), "config": config.model_dump(mode="json")}
    )


def _restore(state: Mapping[str, Any], parts: Mapping[str, Stateful]) -> Progress:
    for name, part in parts.items():
        part.load_state_dict(state[name])
    return Progress(**state["progress"])


def _commit() -> str:
    """The commit of the source that trains, "-dirty" behind it where the tree is not committed.

    Records and pages, which runs themselves write, may differ. "" where git is not installed, or the
    source is not in a repository.
    """
    tree = ("--", ":/", ":!/results", ":!/docs")
    commit = _git("describe", "--always", "--abbrev=12")
    changed = _git("status", "--porcelain", "--untracked-files=no", *tree)
    return f"{commit}-dirty" if changed else commit


def _git(*arguments: str) -> str:
    try:
        git = subprocess.run(
            ["git", *arguments],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        return ""
    return git.stdout.strip()


def _epoch(
    model: Model,
    goal: Objective,
    average: AveragedModel | None,
    examples: Examples,
    rng: np.random.Generator,
    optimisers: list[torch.optim.Optimizer],
    schedules: list[LambdaLR],
    config: RunConfig,
    title: str,
) -> float:
    """One pass over the examples; the mean loss."""
    model.train()
    total = 0.0
    dense = [p for group in optimisers[0].param_groups for p in group["params"]]
    size, half = config.optimiser.batch, config.optimiser.precision == "bfloat16"
    for step, (sides, targets) in enumerate(
        track(examples.batches(size, rng), title, examples.steps(size), transient=True)
    ):
        with torch.autocast(config.device, torch.bfloat16, enabled=half):
            loss = goal.loss(model, sides, torch.from_numpy(targets).to(config.device))
        for optimiser in optimisers:
            optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(dense, config.optimiser.clip)
        for optimiser, schedule in zip(optimisers, schedules, strict=True):
            optimiser.step()
            schedule.step()
        if average and step % AVERAGE_EVERY == 0:
            average.update_parameters(model)
        total += loss.item() * len(targets)
    return total / len(examples)

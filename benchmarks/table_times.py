"""Test time of the papers' rows: processor seconds that each encoder takes to classify SNLI's dev pairs in torch.

    python -m benchmarks.table_times [TABLE ...]

The weights are those that training starts with: time does not depend on their values. One thread, float32, batches of
256 pairs of similar length, parses and tokens made before; the least of three passes, with the rows in turn.
"""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from benchmarks import records
from benchmarks.texts import DATA
from heedful.cli.options import PARSER
from heedful.training import tasks
from heedful.training.config import CACHE, Paths, RunConfig
from heedful.training.model import make_model
from heedful.training.objectives import dev_score, make_objective
from heedful.training.prepare import prepare
from tools import paper_tables

tasks.add("tools.tasks")

TABLES = ("disan-snli", "dsa-snli", "ms-san-priors", "ms-san-positions")
TRAIN_ROWS = 2000
"""Enough for a vocabulary."""
PASSES = 3


def main(names: Annotated[list[str] | None, typer.Argument()] = None) -> None:
    """Measure, and write the record."""
    torch.set_num_threads(1)
    records.write("table_times", "Test time of the papers' rows", *map(_table, names or TABLES))


def _table(name: str) -> dict[str, Any]:
    table = paper_tables.read(Path("results/tables") / f"{name}.toml")
    passes = {
        row.name: _pass(next(iter(row.runs(table.seeds).values())), row.config)
        for row in table.rows
    }
    seconds = dict.fromkeys(passes, float("inf"))
    for _ in range(PASSES):
        for row, classify in passes.items():
            start = time.process_time()
            classify()
            seconds[row] = min(seconds[row], time.process_time() - start)
    pairs = len(tasks.get("snli").dev.read(DATA))
    rows: list[records.Row] = [
        {"row": row, "seconds": least, "milliseconds a batch of 64": 64_000 * least / pairs}
        for row, least in seconds.items()
    ]
    return records.table(f"{table.title}:", rows)


def _pass(config: RunConfig, file: Path) -> Callable[[], float]:
    """Classifies every dev pair of the configuration's task."""
    task = tasks.get(config.task)
    paths = Paths(Path(), DATA, PARSER, CACHE, file)
    objective = make_objective(
        task.kind, config, classes=len(task.labels), pipeline=PARSER, cache=paths.cache
    )
    examples = task.train[0].read(DATA)[:TRAIN_ROWS]
    devs = {task.name: task.dev.read(DATA)}
    inputs = prepare(config, task, objective, examples, devs, paths)
    model = make_model(config, task.kind, len(task.labels), inputs.words)
    return partial(dev_score, objective, task.kind, model, inputs.dev[task.name])


if __name__ == "__main__":
    typer.run(main)

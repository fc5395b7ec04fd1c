"""The part of docs/notes/results.md about the papers' tables: each row's runs next to the paper's figure."""

import json
import math
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from heedful.models.registry import build
from heedful.text.kinds import Kind
from heedful.training import tasks
from heedful.training.config import RunConfig
from heedful.training.errors import ConfigError
from heedful.training.model import make_head
from tools import paper_tables
from tools.markdown import difference, figure, is_changed, named, run_names
from tools.markdown import table as markdown_table
from tools.paper_tables import RowConfig, TableConfig
from tools.scoring import TRAIN_ROWS

HEAD = """## The papers' tables

Every score is of the test split, evaluated once a run unless a list below says otherwise. A row with two runs or
more has the standard deviation over them, which leaves out what another test split would change: *se* is the
standard error of one score, from the number of test rows. *Weights* are counted as the papers count them:
encoder and head without word vectors, a transformer with its own; *paper's* are those that the paper counts.
*Commit* is the source of the runs. *With changes*: some were not committed, nobody can look up which, and a list below
the table says why the row stands. SGD trains the rows of R8 and News but the transformer's, as in the paper;
Adam trains all others, DiSAN's too, whose paper has Adadelta. An L2 penalty is part of the loss. Adam moves the
word vectors wherever they are not frozen.
"""


def standard_error(value: float, metric: str, rows: int) -> float | None:
    """Of an accuracy over so many rows; None for another metric."""
    return math.sqrt(value * (1 - value) / rows) if metric == "accuracy" else None


def count_weights(config: RunConfig, kind: Kind, classes: int) -> int:
    """The weights of the encoder and its head, without word vectors or a transformer: the papers' count."""
    with torch.device("meta"):
        encoder = build(config.encoder.name, config.encoder_keywords())
        head = make_head(config, kind, classes, encoder.dim)
    return sum(one.numel() for part in (encoder, head) for one in part.parameters())


@dataclass(frozen=True, slots=True)
class Measured:
    """The runs of a row."""

    values: list[float]
    metric: str
    weights: int
    error: float | None
    """Standard error of one score of these test rows; None for a correlation."""
    commits: tuple[str, ...]

    @property
    def mean(self) -> float:
        return statistics.mean(self.values)

    @property
    def shown(self) -> str:
        """The mean, with the standard deviation of two runs or more."""
        score = figure(self.mean, self.metric)
        if len(self.values) > 1:
            score += f" ± {figure(statistics.stdev(self.values), self.metric)}"
        return score

    @property
    def variance(self) -> float:
        """Of the mean: what other test rows and other seeds would change."""
        seeds = statistics.variance(self.values) / len(self.values) if len(self.values) > 1 else 0.0
        return (self.error or 0.0) ** 2 + seeds


def measured(name: str, row: RowConfig, table: TableConfig, results: Path) -> Measured | None:
    """What the records say of a row; None where there are none.

    Raises ConfigError for a record of a changed source, unless the row says why it stands.
    """
    records = paper_tables.records(results, name, row, table.seeds)
    if not records:
        return None
    scores = [record["scores"][0] for record in records]
    values, metric = [score["value"] for score in scores], scores[0]["metric"]
    rows = sum(score["rows"] for score in scores) if row.folds else scores[0]["rows"]
    error = standard_error(statistics.mean(values), metric, rows)
    commits = tuple(dict.fromkeys(record["commit"] for record in records))
    if not row.changed and any(is_changed(commit) for commit in commits):
        raise ConfigError(
            f"{name}: {row.name}: a record's source had changes that no commit holds: run it again from a clean "
            "tree, or say in `changed` why it stands"
        )
    return Measured(values, metric, _weights(row, records[0]), error, commits)


def _weights(row: RowConfig, record: dict[str, Any]) -> int:
    config = RunConfig.model_validate(record["config"])
    task = tasks.get(config.task)
    return count_weights(config, task.kind, len(task.labels)) + row.transformer_weights


def table_lines(name: str, table: TableConfig, results: Path) -> Iterator[str]:
    """The lines of one table and the lists below it."""
    found = {row.name: measured(name, row, table, results) for row in table.rows}
    yield f"### {table.title}\n"
    yield f"`python -m tools reproduce {name}`\n"
    headings = ("row", "weights", "paper's", "ours", "se", "paper", "difference", "runs", "commit")
    yield from markdown_table(headings, (_row(row, found[row.name]) for row in table.rows))
    lines = _notes(name, table, results)
    if table.full and (full := found[table.full]):
        lines += _against_full(table.full, full, found)
    if lines:
        yield from (f"- {line}" for line in lines)
        yield ""


def _row(row: RowConfig, found: Measured | None) -> tuple[object, ...]:
    paper = figure(row.paper, found.metric if found else "accuracy")
    if found is None:
        return row.name, "", row.paper_weights, "not run", "", paper, "", 0, ""
    return (
        *(row.name, f"{found.weights:,}", row.paper_weights, found.shown),
        figure(found.error, found.metric, 2),
        *(paper, difference(found.mean, row.paper, found.metric)),
        *(len(found.values), ", ".join(map(named, found.commits))),
    )


def _notes(name: str, table: TableConfig, results: Path) -> list[str]:
    """What the rows were trained on and by whom they were taught, and what the table says of them."""
    ran = {
        row.name: records
        for row in table.rows
        if (records := paper_tables.records(results, name, row, table.seeds))
    }
    lines = [f"Not as in the paper: {'; '.join(table.deviations)}."] if table.deviations else []
    lines += sorted(
        {
            f"Trained on {one['name']}, {one['rows']:,} rows: {one['note']}."
            for of_row in ran.values()
            for one in of_row[0]["data"]
        }
    )
    lines += [
        f"**{row}** is taught by {run_names(teacher.runs)}, over all-MiniLM-L6-v2: "
        f"{teacher.weight} of each target is the answer, and all of it where a pair has no label."
        for row, of_row in ran.items()
        if (teacher := RunConfig.model_validate(of_row[0]["config"]).teacher)
    ]
    lines += [f"{row.name}: {row.note}." for row in table.rows if row.note]
    lines += [f"{row.name}, with changes: {row.changed}." for row in table.rows if row.changed]
    lines += [
        f"{row.name}: not run: {row.not_run}."
        for row in table.rows
        if row.not_run and row.name not in ran
    ]
    by_row = {
        f"On at most {TRAIN_ROWS:,} rows of train": _on_train(ran),
        "Precision of the products, by run": _precisions(ran),
        "Processor seconds of training an epoch, one thread": _epoch_seconds(ran),
        "Processor seconds of SNLI's dev pairs, one thread": _dev_seconds(table.title, results),
    }
    for what, figures in by_row.items():
        if figures:
            lines.append(f"{what}: {', '.join(f'{row} {each}' for row, each in figures.items())}.")
    return lines


def _on_train(ran: Mapping[str, list[Any]]) -> dict[str, str]:
    """The mean score of a row's runs on train, as far as their records have it: since 2026-11-25."""
    found = {row: [one["train"] for one in of_row if "train" in one] for row, of_row in ran.items()}
    return {
        row: figure(statistics.mean(one["value"] for one in scores), scores[0]["metric"])
        for row, scores in found.items()
        if scores
    }


def _precisions(ran: Mapping[str, list[Any]]) -> dict[str, str]:
    """Of the rows whose runs differ in it, in the order of the runs."""
    found = {
        row: [one["config"]["optimiser"]["precision"] for one in of_row]
        for row, of_row in ran.items()
    }
    return {row: " and ".join(each) for row, each in found.items() if len(set(each)) > 1}


def _epoch_seconds(ran: Mapping[str, list[Any]]) -> dict[str, str]:
    """The median epoch of a row's first run on a CPU, as far as its record has them: since 2026-11-23."""
    found = {
        row: [
            one["processor_seconds"]
            for one in of_row[0].get("log", [])
            if "processor_seconds" in one and of_row[0]["config"].get("device") != "cuda"
        ]
        for row, of_row in ran.items()
    }
    return {row: f"{statistics.median(epochs):.0f}" for row, epochs in found.items() if epochs}


def _dev_seconds(title: str, results: Path) -> dict[str, str]:
    """By row, as `benchmarks.table_times` measured them; empty for a table that it leaves out."""
    file = results / "performance" / "table_times.json"
    if not file.exists():
        return {}
    found = json.loads(file.read_text(encoding="utf-8"))["tables"]
    return {
        row["row"]: f"{row['seconds']:.1f}"
        for table in found
        if table["caption"] == f"{title}:"
        for row in table["rows"]
    }


def _against_full(name: str, full: Measured, measured: dict[str, Measured | None]) -> Iterator[str]:
    """How far each other row is below the full model, with two standard errors of the difference."""
    rows = []
    for row, other in measured.items():
        if row != name and other is not None:
            bound = figure(2 * math.sqrt(full.variance + other.variance), full.metric)
            rows.append(f"{row} {figure(full.mean - other.mean, full.metric)} ({bound})")
    if rows:
        yield f"{name} minus another row (two standard errors of it): {', '.join(rows)}."

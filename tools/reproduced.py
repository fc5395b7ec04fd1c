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
    """The standard error of an accuracy over so many rows; None for another metric."""
    return math.sqrt(value * (1 - value) / rows) if metric == "accuracy" else None


def count_weights(config: RunConfig, kind: Kind, classes: int) -> int:
    """The weights of the encoder and its head, without word vectors or a transformer: the papers' count."""
    with torch.device("meta"):
        encoder = build(config.encoder.name, config.encoder_keywords())
        head = make_head(config, kind, classes, encoder.dim)
    return sum(weight.numel() for part in (encoder, head) for weight in part.parameters())


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
        """The variance of the mean over test rows and seeds."""
        seeds = statistics.variance(self.values) / len(self.values) if len(self.values) > 1 else 0.0
        return (self.error or 0.0) ** 2 + seeds


def measured(name: str, row: RowConfig, table: TableConfig, results: Path) -> Measured | None:
    """The scores in the records of a row; None without records.

    Raises ConfigError for a record of a changed source, unless the row says why it counts.
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
            "tree, or say in `changed` why it counts"
        )
    return Measured(values, metric, _weights(row, records[0]), error, commits)


def _weights(row: RowConfig, record: dict[str, Any]) -> int:
    config = RunConfig.model_validate(record["config"])
    task = tasks.get(config.task)
    return count_weights(config, task.kind, len(task.labels)) + row.transformer_weights


def table_lines(name: str, table: TableConfig, results: Path) -> Iterator[str]:
    """The lines of one table and the lists below it."""
    by_row = {row.name: measured(name, row, table, results) for row in table.rows}
    yield f"### {table.title}\n"
    yield f"`python -m tools reproduce {name}`\n"
    headings = ("row", "weights", "paper's", "ours", "se", "paper", "difference", "runs", "commit")
    yield from markdown_table(headings, (_row(row, by_row[row.name]) for row in table.rows))
    lines = _notes(name, table, results)
    if table.full and (full := by_row[table.full]):
        lines += _against_full(table.full, full, by_row)
    if lines:
        yield from (f"- {line}" for line in lines)
        yield ""


def _row(row: RowConfig, score: Measured | None) -> tuple[object, ...]:
    paper = figure(row.paper, score.metric if score else "accuracy")
    if score is None:
        return row.name, "", row.paper_weights, "not run", "", paper, "", 0, ""
    return (
        *(row.name, f"{score.weights:,}", row.paper_weights, score.shown),
        figure(score.error, score.metric, 2),
        *(paper, difference(score.mean, row.paper, score.metric)),
        *(len(score.values), ", ".join(map(named, score.commits))),
    )


def _notes(name: str, table: TableConfig, results: Path) -> list[str]:
    """The training data and teachers of the rows, and the remarks of the table."""
    records_by_row = {
        row.name: records
        for row in table.rows
        if (records := paper_tables.records(results, name, row, table.seeds))
    }
    lines = [f"Not as in the paper: {'; '.join(table.deviations)}."] if table.deviations else []
    lines += sorted(
        {
            f"Trained on {data['name']}, {data['rows']:,} rows: {data['note']}."
            for records in records_by_row.values()
            for data in records[0]["data"]
        }
    )
    lines += [
        f"**{row}** is taught by {run_names(teacher.runs)}, over all-MiniLM-L6-v2: "
        f"{teacher.weight} of each target is the answer, and all of it where a pair has no label."
        for row, records in records_by_row.items()
        if (teacher := RunConfig.model_validate(records[0]["config"]).teacher)
    ]
    lines += [f"{row.name}: {row.note}." for row in table.rows if row.note]
    lines += [f"{row.name}, with changes: {row.changed}." for row in table.rows if row.changed]
    lines += [
        f"{row.name}: not run: {row.not_run}."
        for row in table.rows
        if row.not_run and row.name not in records_by_row
    ]
    remarks = {
        f"On at most {TRAIN_ROWS:,} rows of train": _on_train(records_by_row),
        "Precision of the products, by run": _precisions(records_by_row),
        "Processor seconds of training an epoch, one thread": _epoch_seconds(records_by_row),
        "Processor seconds of SNLI's dev pairs, one thread": _dev_seconds(table.title, results),
    }
    for title, figures in remarks.items():
        if figures:
            lines.append(f"{title}: {', '.join(f'{row} {each}' for row, each in figures.items())}.")
    return lines


def _on_train(records_by_row: Mapping[str, list[Any]]) -> dict[str, str]:
    """The mean score of a row's runs on train, of the records that have it: those since 2026-11-25."""
    scores_by_row = {
        row: [record["train"] for record in records if "train" in record]
        for row, records in records_by_row.items()
    }
    return {
        row: figure(statistics.mean(score["value"] for score in scores), scores[0]["metric"])
        for row, scores in scores_by_row.items()
        if scores
    }


def _precisions(records_by_row: Mapping[str, list[Any]]) -> dict[str, str]:
    """The precisions of the rows whose runs differ in it, in the order of the runs."""
    precisions = {
        row: [record["config"]["optimiser"]["precision"] for record in records]
        for row, records in records_by_row.items()
    }
    return {row: " and ".join(each) for row, each in precisions.items() if len(set(each)) > 1}


def _epoch_seconds(records_by_row: Mapping[str, list[Any]]) -> dict[str, str]:
    """The median epoch of a row's first run on a CPU, of the records that have it: those since 2026-11-23."""
    epochs_by_row = {
        row: [
            epoch["processor_seconds"]
            for epoch in records[0].get("log", [])
            if "processor_seconds" in epoch and records[0]["config"].get("device") != "cuda"
        ]
        for row, records in records_by_row.items()
    }
    return {
        row: f"{statistics.median(epochs):.0f}" for row, epochs in epochs_by_row.items() if epochs
    }


def _dev_seconds(title: str, results: Path) -> dict[str, str]:
    """The figures of `benchmarks.table_times` by row; empty for a table that it leaves out."""
    file = results / "performance" / "table_times.json"
    if not file.exists():
        return {}
    tables = json.loads(file.read_text(encoding="utf-8"))["tables"]
    return {
        row["row"]: f"{row['seconds']:.1f}"
        for table in tables
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

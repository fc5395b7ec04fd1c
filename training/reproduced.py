"""The part of docs/results.md about the papers' tables: each row's runs beside the paper's figure."""

import json
import math
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.training import tables, tasks
from heedful.training.config import RunConfig
from heedful.training.evaluate import TRAIN_ROWS
from heedful.training.markdown import figure
from heedful.training.markdown import table as markdown_table
from heedful.training.metrics import standard_error
from heedful.training.model import count_weights
from heedful.training.tables import RowConfig, TableConfig

HEAD = """## The papers' tables

Every score is of the test split, asked once a run unless a list below says otherwise. A row with two runs or
more has the standard deviation over them, which leaves out what another test split would change: *se* is the
standard error of one score, from the number of test rows. *Weights* are counted as the papers count them:
encoder and head without word vectors, a transformer with its own. SGD trains R8's rows but the transformer's,
as in the paper; Adam trains all others, DiSAN's too, whose paper has Adadelta. An L2 penalty is part of the
loss. Adam moves the word vectors in every run.
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """The runs of a row."""

    values: list[float]
    metric: str
    weights: int
    error: float | None
    """Standard error of one score of these test rows; None for a correlation."""

    @property
    def mean(self) -> float:
        return statistics.mean(self.values)

    @property
    def variance(self) -> float:
        """Of the mean: what other test rows and other seeds would change."""
        seeds = statistics.variance(self.values) / len(self.values) if len(self.values) > 1 else 0.0
        return (self.error or 0.0) ** 2 + seeds


def measured(name: str, row: RowConfig, table: TableConfig, results: Path) -> Measured | None:
    """What the records say of a row; None where there are none."""
    records = tables.records(results, name, row, table.seeds)
    if not records:
        return None
    scores = [record["scores"][0] for record in records]
    values, metric = [score["value"] for score in scores], scores[0]["metric"]
    rows = sum(score["rows"] for score in scores) if row.folds else scores[0]["rows"]
    error = standard_error(statistics.mean(values), metric, rows)
    return Measured(values, metric, _weights(row, records[0]), error)


def _weights(row: RowConfig, record: dict[str, Any]) -> int:
    config = RunConfig.model_validate(record["config"])
    task = tasks.get(config.task)
    return count_weights(config, task.kind, len(task.labels)) + row.transformer_weights


def table_lines(name: str, table: TableConfig, results: Path) -> Iterator[str]:
    """The lines of one table and the lists below it."""
    found = {row.name: measured(name, row, table, results) for row in table.rows}
    yield f"### {table.title}\n"
    yield f"`heedful reproduce {name}`\n"
    headings = ("row", "weights", "paper's weights", "score", "se", "runs", "paper")
    yield from markdown_table(headings, (_row(row, found[row.name]) for row in table.rows))
    yield from _notes(name, table, results)
    if table.full and (full := found[table.full]):
        yield from _against_full(table.full, full, found)


def _row(row: RowConfig, found: Measured | None) -> tuple[object, ...]:
    paper = figure(row.paper, found.metric if found else "accuracy")
    if found is None:
        return row.name, "", row.paper_weights, "not run", "", 0, paper
    score = figure(found.mean, found.metric)
    if len(found.values) > 1:
        score += f" ± {figure(statistics.stdev(found.values), found.metric)}"
    error = figure(found.error, found.metric, 2)
    count = len(found.values)
    return row.name, f"{found.weights:,}", row.paper_weights, score, error, count, paper


def _notes(name: str, table: TableConfig, results: Path) -> Iterator[str]:
    """What the rows were trained on and by whom they were taught, and what the table says of them."""
    records = [tables.records(results, name, row, table.seeds) for row in table.rows]
    sources = {
        f"Trained on {one['name']}, {one['rows']:,} rows: {one['note']}."
        for of_row in records
        for record in of_row[:1]
        for one in record["data"]
    }
    taught = [
        f"**{row.name}** is taught by `{Path(teacher['run']).name}`, a model over all-MiniLM-L6-v2: "
        f"{teacher['weight']} of each target is its answer, and all of it where a pair has no label."
        for row, of_row in zip(table.rows, records, strict=True)
        if of_row and (teacher := of_row[0]["config"].get("teacher"))
    ]
    said = [f"{row.name}: {row.note}." for row in table.rows if row.note]
    unrun = [
        f"{row.name}: not run: {row.not_run}."
        for row, of_row in zip(table.rows, records, strict=True)
        if row.not_run and not of_row
    ]
    times = [
        f"{row.name} {statistics.median(found):.0f}"
        for row, of_row in zip(table.rows, records, strict=True)
        if of_row and (found := _seconds(of_row[0]))
    ]
    costs = [f"Processor seconds of training an epoch, one thread: {', '.join(times)}."] * bool(
        times
    )
    learned = [
        f"{row.name} {figure(statistics.mean(one['value'] for one in on_train), on_train[0]['metric'])}"
        for row, of_row in zip(table.rows, records, strict=True)
        if (on_train := [record["train"] for record in of_row if "train" in record])
    ]
    fits = [f"On at most {TRAIN_ROWS:,} rows of train: {', '.join(learned)}."] * bool(learned)
    tests = [f"{row} {seconds:.1f}" for row, seconds in _test_seconds(table.title, results).items()]
    costs += [f"Processor seconds of SNLI's dev pairs, one thread: {', '.join(tests)}."] * bool(
        tests
    )
    if lines := [*sorted(sources), *taught, *said, *unrun, *fits, *costs]:
        yield from (f"- {line}" for line in lines)
        yield ""


def _seconds(record: dict[str, Any]) -> list[float]:
    """Of each epoch, as far as the record has them: since 2026-11-23."""
    epochs = record.get("log", [])
    return [one["processor_seconds"] for one in epochs if "processor_seconds" in one]


def _test_seconds(title: str, results: Path) -> dict[str, float]:
    """By row, as `benchmarks.table_times` measured them; empty for a table that it leaves out."""
    file = results / "performance" / "table_times.json"
    if not file.exists():
        return {}
    found = json.loads(file.read_text(encoding="utf-8"))["tables"]
    return {
        row["row"]: row["seconds"]
        for table in found
        if table["caption"] == f"{title}:"
        for row in table["rows"]
    }


def _against_full(name: str, full: Measured, found: dict[str, Measured | None]) -> Iterator[str]:
    """By how much the full model beats each other row, beside two standard errors of the difference."""
    for row, other in found.items():
        if row == name or other is None:
            continue
        gain, bound = full.mean - other.mean, 2 * math.sqrt(full.variance + other.variance)
        said = "more than" if gain > bound else "within"
        if -gain > bound:
            said = "the row is better, by more than"
        errors = figure(bound, full.metric)
        yield f"- {name} minus {row}: {figure(gain, full.metric)} ({said} two standard errors, {errors})."
    yield ""

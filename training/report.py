"""docs/results.md, written from records alone: the shipped cards, the reproduced tables, the transfer runs."""

import json
import statistics
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from training import tables
from training.tables import RowConfig, TableConfig

HEAD = """# Results

Written by `heedful report` from `bundles/*/card.json` and `results/`; not edited by hand. Scores on test were
asked of a service over HTTP. Accuracies are in percent.
"""
TASKS = ("cr", "mpqa", "subj", "sst2", "trec")
SIMILARITIES = ("stsb dev spearman", "sick test pearson")


def report(bundles: Path, results: Path) -> str:
    """The page. Raises ConfigError for a table that cannot be read."""
    parts = [HEAD, *_shipped(bundles, results)]
    for file in sorted((results / "tables").glob("*.toml")):
        parts += _table(file.stem, tables.read(file), results)
    parts += _transfer(results / "transfer")
    return "\n".join(parts)


def _shipped(bundles: Path, results: Path) -> Iterator[str]:
    cards = [_read(file) for file in sorted(bundles.glob("*/card.json"))]
    known = tomllib.loads((results / "goals.toml").read_text(encoding="utf-8"))
    yield "## Shipped models\n"
    yield "| bundle | dataset | split | metric | score | goal | floor | paper | rows | seed |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for card in cards:
        for score in card["scores"]:
            name, tested = score["metric"], score["split"] == "test"
            goal = _find(known["goals"], card, score) if tested else {}
            paper = _find(known["papers"], card, score) if tested else {}
            figures = (goal.get("goal"), goal.get("floor"), paper.get("value"))
            cells = (
                f"`{card['name']}`",
                *(score[key] for key in ("dataset", "split", "metric")),
                _figure(score["value"], name),
                *(_figure(value, name) for value in figures),
                f"{score['rows']:,}",
                card["training"]["seed"],
            )
            yield _line(cells)
    yield "\nA paper's figure is that of the same encoder, with the whole of the data.\n"
    yield "| bundle | trained on | rows | licence of the data | |"
    yield "|---|---|---|---|---|"
    for card in cards:
        for data in card["training"]["data"]:
            rows = f"{data['rows']:,}"
            yield _line((f"`{card['name']}`", data["name"], rows, data["licence"], data["note"]))
    yield ""


def _find(figures: Sequence[dict[str, Any]], card: dict[str, Any], score: dict[str, Any]) -> Any:
    for figure in figures:
        if (
            card["task"] in figure["tasks"]
            and figure["dataset"] == score["dataset"]
            and figure["metric"] == score["metric"]
            and figure.get("encoder", card["encoder"]["name"]) == card["encoder"]["name"]
        ):
            return figure
    return {}


def _table(name: str, table: TableConfig, results: Path) -> Iterator[str]:
    found = {row.name: _values(name, row, table, results) for row in table.rows}
    yield f"## {table.title}\n"
    yield f"`heedful reproduce {name}`: mean and standard deviation over the runs.\n"
    yield "| row | weights | score | runs | paper |"
    yield "|---|---|---|---|---|"
    for row in table.rows:
        values, weights, metric = found[row.name]
        score = "not run" if not values else _figure(statistics.mean(values), metric)
        if len(values) > 1:
            score += f" ± {_figure(statistics.stdev(values), metric)}"
        yield _line((row.name, weights, score, len(values), _figure(row.paper, metric)))
    yield ""
    if sources := sorted(_data(name, table, results)):
        yield from (
            f"- Trained on {source}, {rows:,} rows: {note}." for source, rows, note in sources
        )
        yield ""
    if table.full and found[table.full][0]:
        yield from _against_full(table, table.full, found)


def _against_full(table: TableConfig, name: str, found: dict[str, Any]) -> Iterator[str]:
    """Whether the full model beats each other row by more than the deviation of either."""
    full, _, metric = found[name]
    for row in table.rows:
        values = found[row.name][0]
        if row.name == name or not values:
            continue
        gain = statistics.mean(full) - statistics.mean(values)
        spread = max((statistics.stdev(v) for v in (full, values) if len(v) > 1), default=None)
        if spread is None:
            said = "one run each: no deviation is known"
        elif gain > spread:
            said = f"more than the deviation, {_figure(spread, metric)}"
        else:
            said = f"not more than the deviation, {_figure(spread, metric)}"
        yield f"- {name} less {row.name}: {_figure(gain, metric)} ({said})."
    yield ""


def _values(
    name: str, row: RowConfig, table: TableConfig, results: Path
) -> tuple[list[float], str, str]:
    """Scores of the row's runs, the encoder's weights and the metric's name."""
    records = tables.records(results, name, row, table.seeds)
    scores = [record["scores"][0] for record in records]
    weights = f"{records[0]['parameters']:,}" if records else ""
    metric = scores[0]["metric"] if scores else "accuracy"
    return [score["value"] for score in scores], weights, metric


def _data(name: str, table: TableConfig, results: Path) -> set[tuple[str, int, str]]:
    """Name, rows and note of every source that the first run of a row has read."""
    found = [tables.records(results, name, row, table.seeds)[:1] for row in table.rows]
    sources = [source for records in found for record in records for source in record["data"]]
    return {(source["name"], source["rows"], source["note"]) for source in sources}


def _transfer(folder: Path) -> Iterator[str]:
    yield "## Frozen embeddings\n"
    yield (
        "`heedful transfer MODEL`: logistic regression on frozen embeddings, accuracy (CR, MPQA and SUBJ in ten\n"
        "folds); cosine similarity without training; sentences a second, in turn with all-MiniLM-L6-v2 in one run.\n"
    )
    yield _line(("model", "values", *TASKS, *SIMILARITIES, "sentences/s", "MiniLM beside it"))
    yield "|" + "---|" * (len(TASKS) + len(SIMILARITIES) + 4)
    for record in (_read(file) for file in sorted(folder.glob("*.json"))):
        yield _line(
            (
                record["model"],
                record["dimension"],
                *(_figure(record["accuracy"].get(task), "accuracy") for task in TASKS),
                *(_figure(record["similarity"].get(one), "") for one in SIMILARITIES),
                f"{record['sentences_per_second']:.0f}",
                f"{record['minilm_sentences_per_second']:.0f}",
            )
        )
    yield ""


def _figure(value: float | None, metric: str) -> str:
    """Percent for an accuracy, else three digits."""
    if value is None:
        return ""
    return f"{100 * value:.1f}" if metric == "accuracy" else f"{value:.3f}"


def _line(cells: Sequence[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _read(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))

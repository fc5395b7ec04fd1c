"""Writes docs/results.md from records: the shipped cards, the reproduced tables, the transfer runs."""

import json
import statistics
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from heedful.training import tables
from heedful.training.markdown import table as markdown_table
from heedful.training.suite import WORDS
from heedful.training.tables import RowConfig, TableConfig

HEAD = """# Results

Written by `heedful report` from `bundles/*/card.json` and `results/`; not edited by hand. Test scores were
measured through the service. Accuracies are in percent.
"""
TASKS = ("cr", "mpqa", "subj", "sst2", "trec")
SIMILARITIES = ("stsb dev spearman", "sick test pearson")


def report(bundles: Path, results: Path) -> str:
    """The page. Raises ConfigError for a table that cannot be read."""
    known = tomllib.loads((results / "goals.toml").read_text(encoding="utf-8"))
    parts = [HEAD, *_goals(known["goals"], bundles, results), *_shipped(known["papers"], bundles)]
    for file in sorted((results / "tables").glob("*.toml")):
        parts += _table(file.stem, tables.read(file), results)
    parts += _transfer(results / "transfer")
    parts += suite_tables(results / "suite")
    return "\n".join(parts)


def _goals(goals: Sequence[dict[str, Any]], bundles: Path, results: Path) -> Iterator[str]:
    yield "## Goals\n"
    yield (
        "On test unless noted. A goal is about what the papers reach with all of the data, a floor the minimum that\n"
        "is accepted.\n"
    )
    rows = []
    for goal in goals:
        value, metric, where = (
            _of_bundle(goal, bundles) if "bundle" in goal else _of_row(goal, results)
        )
        reached = "not run"
        if value is not None:
            reached = next((name for name in ("goal", "floor") if value >= goal[name]), "neither")
        figures = (_figure(one, metric) for one in (value, goal["goal"], goal["floor"]))
        rows.append((goal["name"], where, *figures, reached))
    yield from markdown_table(("", "measured", "score", "goal", "floor", "reached"), rows)


def _of_bundle(goal: dict[str, Any], bundles: Path) -> tuple[float | None, str, str]:
    """The score that the card has, its metric, and where it was measured."""
    name, split = goal["bundle"], goal.get("split", "test")
    wanted = (goal["dataset"], split, goal["metric"])
    scores = _read(bundles / name / "card.json")["scores"]
    (score,) = (s for s in scores if (s["dataset"], s["split"], s["metric"]) == wanted)
    return score["value"], goal["metric"], f"`{name}`" if split == "test" else f"`{name}`, {split}"


def _of_row(goal: dict[str, Any], results: Path) -> tuple[float | None, str, str]:
    """The same of a table's row: the mean of its runs, None where there are none."""
    table = tables.read(results / "tables" / f"{goal['table']}.toml")
    (row,) = (row for row in table.rows if row.name == goal["row"])
    values, _, metric = _values(goal["table"], row, table, results)
    return statistics.mean(values) if values else None, metric, f"{row.name} (`{goal['table']}`)"


def _shipped(papers: Sequence[dict[str, Any]], bundles: Path) -> Iterator[str]:
    cards = [_read(file) for file in sorted(bundles.glob("*/card.json"))]
    yield "## Shipped models\n"
    yield from markdown_table(
        ("bundle", "dataset", "split", "metric", "score", "paper", "rows", "seed"),
        (
            (
                f"`{card['name']}`",
                *(score[key] for key in ("dataset", "split", "metric")),
                _figure(score["value"], score["metric"]),
                _figure(_paper(papers, card, score), score["metric"]),
                f"{score['rows']:,}",
                card["training"]["seed"],
            )
            for card in cards
            for score in card["scores"]
        ),
    )
    yield "The paper's score is that of the same encoder, trained on all of the data.\n"
    yield from markdown_table(
        ("bundle", "trained on", "rows", "licence of the data", ""),
        (
            (
                f"`{card['name']}`",
                data["name"],
                f"{data['rows']:,}",
                data["licence"],
                data["note"],
            )
            for card in cards
            for data in card["training"]["data"]
        ),
    )


def _paper(
    papers: Sequence[dict[str, Any]], card: dict[str, Any], score: dict[str, Any]
) -> float | None:
    """The paper's figure of the card's encoder where the score is on test."""
    if score["split"] != "test":
        return None
    for paper in papers:
        if (
            card["task"] in paper["tasks"]
            and paper["dataset"] == score["dataset"]
            and paper["metric"] == score["metric"]
            and paper["encoder"] == card["encoder"]["name"]
        ):
            value: float = paper["value"]
            return value
    return None


def _table(name: str, table: TableConfig, results: Path) -> Iterator[str]:
    found = {row.name: _values(name, row, table, results) for row in table.rows}
    yield f"## {table.title}\n"
    yield f"`heedful reproduce {name}`: mean and standard deviation over the runs.\n"
    rows = []
    for row in table.rows:
        values, weights, metric = found[row.name]
        score = "not run" if not values else _figure(statistics.mean(values), metric)
        if len(values) > 1:
            score += f" ± {_figure(statistics.stdev(values), metric)}"
        rows.append((row.name, weights, score, len(values), _figure(row.paper, metric)))
    yield from markdown_table(("row", "weights", "score", "runs", "paper"), rows)
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
        elif -gain > spread:
            said = f"the row is better, by more than the deviation, {_figure(spread, metric)}"
        else:
            said = f"not more than the deviation, {_figure(spread, metric)}"
        yield f"- {name} minus {row.name}: {_figure(gain, metric)} ({said})."
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
        "folds); cosine similarity without training; sentences a second and MiniLM's in the same run.\n"
    )
    yield from markdown_table(
        ("model", "values", *TASKS, *SIMILARITIES, "sentences/s", "MiniLM, same run"),
        (
            (
                record["model"],
                record["dimension"],
                *(_figure(record["accuracy"].get(task), "accuracy") for task in TASKS),
                *(_figure(record["similarity"].get(one), "") for one in SIMILARITIES),
                f"{record['sentences_per_second']:.0f}",
                f"{record['minilm_sentences_per_second']:.0f}",
            )
            for record in map(_read, sorted(folder.glob("*.json")))
        ),
    )


def suite_tables(folder: Path) -> Iterator[str]:
    """A table for the records that have the same sets; nothing where there is no record."""
    rows: dict[tuple[str, ...], list[list[str]]] = {}
    for record in map(_read, sorted(folder.glob("*.json"))):
        for prefix, name in (("", f"`{record['model']}`"), (WORDS, "the mean of its word vectors")):
            own = [
                one for one in record["figures"] if one["dataset"].startswith(WORDS) == bool(prefix)
            ]
            columns = [f"{one['dataset'].removeprefix(WORDS)}, {one['metric']}" for one in own]
            if own:
                values = [_figure(one["value"], one["metric"]) for one in own]
                rows.setdefault((record["split"], *columns), []).append([name, *values])
    if rows:
        yield "## The suite\n"
        yield (
            "`heedful evaluate BUNDLE --suite`: every set of a bundle's kind. ECE is the expected calibration error\n"
            "over 15 bins. CR, MPQA and SUBJ are in ten folds.\n"
        )
    for (split, *columns), together in rows.items():
        yield from markdown_table((f"on {split}", *columns), together)


def _figure(value: float | None, metric: str) -> str:
    """Percent for an accuracy, else three digits."""
    if value is None:
        return ""
    return f"{100 * value:.1f}" if metric == "accuracy" else f"{value:.3f}"


def _read(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))

"""The part of docs/results.md about the papers' tables: a table a paper, a line a row."""

from collections.abc import Iterator
from pathlib import Path

from tools import paper_tables, papers
from tools.markdown import difference, figure, table
from tools.paper_tables import RowConfig, TableConfig
from tools.reproduced import measured

HEADINGS = ("table", "row", "ours", "paper", "difference", "train rows", "runs")


def lines(results: Path) -> Iterator[str]:
    """A table of `results/tables` stands with the first item of `results/papers.toml` that names it.

    Raises ConfigError for a file that is missing or cannot be read.
    """
    listed: set[str] = set()
    for paper in papers.parsed(results):
        yield f"### {paper.paper}\n"
        rows: list[tuple[object, ...]] = []
        for item in paper.items:
            for name in item.tables:
                if name not in listed:
                    listed.add(name)
                    config = paper_tables.read(results / "tables" / f"{name}.toml")
                    rows += [_line(item.item, name, row, config, results) for row in config.rows]
        yield from table(HEADINGS, rows)


def _line(
    item: str, name: str, row: RowConfig, config: TableConfig, results: Path
) -> tuple[object, ...]:
    title = f"{item} (`{name}`)"
    score = measured(name, row, config, results)
    if score is None:
        return title, row.name, "not run", figure(row.paper, "accuracy"), "", "", 0
    data = paper_tables.records(results, name, row, config.seeds)[0]["data"]
    return (
        *(title, row.name, score.shown, figure(row.paper, score.metric)),
        difference(score.mean, row.paper, score.metric),
        *(f"{sum(part['rows'] for part in data):,}", len(score.values)),
    )

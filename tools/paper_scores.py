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
                    chosen = paper_tables.read(results / "tables" / f"{name}.toml")
                    rows += [_line(item.item, name, row, chosen, results) for row in chosen.rows]
        yield from table(HEADINGS, rows)


def _line(
    item: str, name: str, row: RowConfig, chosen: TableConfig, results: Path
) -> tuple[object, ...]:
    where = f"{item} (`{name}`)"
    found = measured(name, row, chosen, results)
    if found is None:
        return where, row.name, "not run", figure(row.paper, "accuracy"), "", "", 0
    data = paper_tables.records(results, name, row, chosen.seeds)[0]["data"]
    return (
        *(where, row.name, found.shown, figure(row.paper, found.metric)),
        difference(found.mean, row.paper, found.metric),
        *(f"{sum(one['rows'] for one in data):,}", len(found.values)),
    )

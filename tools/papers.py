"""Every table and figure of the four papers: what is reproduced, and why the rest is not (`results/papers.toml`)."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from heedful.training import config
from heedful.training.config import Section
from heedful.training.errors import ConfigError
from tools import paper_tables
from tools.markdown import table as markdown_table


class Item(Section):
    """A table or a figure."""

    item: str
    tables: tuple[str, ...] = ()
    """Tables of `results/tables` that hold its rows."""
    bundles: tuple[str, ...] = ()
    """Shipped models whose scores are compared with it."""
    figure: str = ""
    """The file in docs/figures that reproduces it."""
    missing: str = ""
    """What is not run, and why."""


class Paper(Section):
    paper: str
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """The reproduced and the missing parts of an item."""

    paper: str
    item: str
    here: str
    missing: str


def read(file: Path) -> dict[str, Any]:
    """A TOML file of the folder of tables and records. Raises ConfigError."""
    if not file.is_file():
        raise ConfigError(
            f"there is no {file}: work in a checkout, or name its folder of tables and records with --results"
        )
    return config.load(file)


def parsed(results: Path) -> tuple[Paper, ...]:
    """The papers of `results/papers.toml`. Raises ConfigError."""
    file = results / "papers.toml"
    try:
        return TypeAdapter(tuple[Paper, ...]).validate_python(read(file)["papers"])
    except ValidationError as error:
        raise config.first_fault(error, file) from error


def catalogue(results: Path) -> list[Line]:
    """An entry per table and figure, counted from the records. Raises ConfigError."""
    return [
        Line(paper.paper, item.item, _here(item, results), item.missing)
        for paper in parsed(results)
        for item in paper.items
    ]


def _here(item: Item, results: Path) -> str:
    parts = [_of_table(name, results) for name in item.tables]
    parts += [f"`{name}` ships" for name in item.bundles]
    if item.figure:
        parts.append(f"drawn: [{item.figure}](figures/{item.figure})")
    return "; ".join(parts) or "nothing"


def _of_table(name: str, results: Path) -> str:
    table = paper_tables.read(results / "tables" / f"{name}.toml")
    run = [row for row in table.rows if paper_tables.records(results, name, row, table.seeds)]
    return f"`{name}`: {len(run)} of {len(table.rows)} rows"


def lines(results: Path) -> Iterator[str]:
    """The section of docs/results.md."""
    yield "## Every table and figure of the four papers\n"
    yield "`python -m tools reproduce --all` prints this list.\n"
    headings = ("paper", "table or figure", "here", "not here, and why")
    yield from markdown_table(
        headings, ((line.paper, line.item, line.here, line.missing) for line in catalogue(results))
    )

"""docs/performance.md, written from results/performance alone: the goals, the records and the notes.

python -m benchmarks.report [--out docs/performance.md]
"""

import json
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.records import RESULTS
from heedful.text.atomic import write_file
from heedful.training.markdown import reached
from heedful.training.markdown import table as markdown_table

HEAD = """# Performance

Written by `python -m benchmarks.report` from `results/performance/`; not edited by hand. `make bench` measures
again. The load generator shares the cores with what it measures, the sentences are distinct (SNLI's) and the caches
are off. Absolute figures vary with the machine by 10 to 20 %: compare rows of one table, which were measured in one
run. Three programs only print: `benchmarks.disan_cost` (time and memory of DiSAN's graph by length),
`benchmarks.explain_cost` (what an explanation costs) and `benchmarks.parse` (one parser beside another).
"""


def page(results: Path) -> str:
    """The page from a folder of records (*.json), goals.toml and notes (*.md), in order of their names."""
    records = [json.loads(file.read_text("utf-8")) for file in sorted(results.glob("*.json"))]
    goals = tomllib.loads((results / "goals.toml").read_text("utf-8"))["goals"]
    parts = [HEAD, *_goals(goals, records)]
    for record in records:
        parts += _record(record)
    parts += [file.read_text("utf-8").strip() + "\n" for file in sorted(results.glob("*.md"))]
    return "\n".join(parts)


def verdict(goal: dict[str, Any], figure: float | None) -> str:
    """Whether a figure reaches its goal, its minimum, or neither."""
    if figure is None:
        return "not measured"
    sign = 1 if goal["better"] == "more" else -1
    return reached(sign * figure, sign * goal["goal"], sign * goal["floor"])


def _goals(goals: Sequence[dict[str, Any]], records: Sequence[dict[str, Any]]) -> Iterator[str]:
    figures = {name: value for record in records for name, value in record["goals"].items()}
    yield "## Goals\n"
    rows = []
    for goal in goals:
        figure = figures.get(goal["name"])
        bounds = goal["goal"], goal["floor"]
        wanted = [_with_unit(bound, goal["unit"]) for bound in bounds]
        shown = _with_unit(figure, goal["unit"])
        if shown in wanted and figure not in bounds:  # 19.96 is not the goal of 20
            shown = _with_unit(figure, goal["unit"], digits=4)
        rows.append((goal["what"], *wanted, shown, verdict(goal, figure)))
    yield from markdown_table(("", "goal", "minimum", "figure", "result"), rows)


def _record(record: dict[str, Any]) -> Iterator[str]:
    machine = record["machine"]
    yield f"## {record['title']}\n"
    yield (
        f"`{record['command']}`, {record['when']}, commit {record['commit']}; {machine['cores']} cores "
        f"({machine['processor']}), {machine['memory_gb']} GB, Python {machine['python']}; load average of the "
        f"minute before: {_value(record['load_average'])}.\n"
    )
    for table in record["tables"]:
        yield f"{table['caption']}\n"
        if table["rows"]:
            rows = (map(_value, row.values()) for row in table["rows"])
            yield from markdown_table(list(table["rows"][0]), rows)


def _with_unit(value: float | None, unit: str, digits: int = 3) -> str:
    return "" if value is None else f"{_value(value, digits)} {unit}"


def _value(value: object, digits: int = 3) -> str:
    """A float with `digits` significant digits; from 100 on, without a fraction."""
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.{digits}g}"


def main(
    out: Annotated[Path, typer.Option(help="The page.")] = Path("docs/performance.md"),
    results: Annotated[Path, typer.Option(help="Folder of the records.")] = RESULTS,
) -> None:
    """Write the page."""
    text = page(results)
    write_file(out, lambda part: part.write_text(text, encoding="utf-8"))


if __name__ == "__main__":
    typer.run(main)

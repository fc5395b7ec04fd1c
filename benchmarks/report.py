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
from heedful.files.atomic import write_file
from tools.markdown import named
from tools.markdown import table as markdown_table

OTHER_MACHINE = "other_machine"
"""The folder of the last run's records on another machine."""
HEAD = """# Performance

Written by `python -m benchmarks.report` from `results/performance/`; not edited by hand. `make bench` measures
again. The load generator shares the cores with what it measures, the sentences are distinct (SNLI's) and the caches
are off. Absolute figures vary with the machine by 10 to 20 %: compare rows of one table, which were measured in one
run. The goals have the figures of the last run on each of two machines. Three programs only print:
`benchmarks.disan_cost` (time and memory of DiSAN's graph by length), `benchmarks.explain_cost` (what an explanation
costs) and `benchmarks.parse` (one parser against another).
"""


def page(results: Path) -> str:
    """The page from a folder of records (*.json), goals.toml and notes (*.md), in order of their names.

    Records in its folder OTHER_MACHINE give the goals a second figure.
    """
    records, others = _read(results), _read(results / OTHER_MACHINE)
    goals = tomllib.loads((results / "goals.toml").read_text("utf-8"))["goals"]
    parts = [HEAD, *_goals(goals, [records, others] if others else [records])]
    for record in records:
        parts += record_section(record)
    parts += [file.read_text("utf-8").strip() + "\n" for file in sorted(results.glob("*.md"))]
    return "\n".join(parts)


def verdict(goal: dict[str, Any], figure: float | None) -> str:
    """Whether a figure reaches its goal, its minimum, or neither."""
    if figure is None:
        return "not measured"
    sign = 1 if goal["better"] == "more" else -1
    if sign * figure >= sign * goal["goal"]:
        return "goal reached"
    return "minimum reached" if sign * figure >= sign * goal["floor"] else "**missed**"


def _read(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(file.read_text("utf-8")) for file in sorted(folder.glob("*.json"))]


def _goals(
    goals: Sequence[dict[str, Any]], runs: Sequence[Sequence[dict[str, Any]]]
) -> Iterator[str]:
    """A figure and its result for each run of all programs, under the run's processor and day."""
    yield "## Goals\n"
    figures = [
        {name: value for record in records for name, value in record["goals"].items()}
        for records in runs
    ]
    rows = []
    for goal in goals:
        cells = [_with_unit(bound, goal["unit"]) for bound in (goal["goal"], goal["floor"])]
        for run in figures:
            figure = run.get(goal["name"])
            cells += [_figure_cell(goal, figure), verdict(goal, figure)]
        rows.append((goal["what"], *cells))
    columns = [column for records in runs for column in (_machine(records), "result")]
    yield from markdown_table(("", "goal", "minimum", *columns), rows)


def _machine(records: Sequence[dict[str, Any]]) -> str:
    """The processor and the day of the goals' figures."""
    for record in records:
        if record["goals"]:
            return f"{record['machine']['processor'].partition(',')[0]}, {record['when']}"
    return "figure"


def _figure_cell(goal: dict[str, Any], figure: float | None) -> str:
    """The figure with its unit, with more digits where rounding would make it equal a goal: 19.96 is not 20."""
    shown = _with_unit(figure, goal["unit"])
    bounds = goal["goal"], goal["floor"]
    if figure not in bounds and shown in [_with_unit(bound, goal["unit"]) for bound in bounds]:
        return _with_unit(figure, goal["unit"], digits=4)
    return shown


def record_section(record: dict[str, Any]) -> Iterator[str]:
    """A record as a section of a page."""
    machine = record["machine"]
    yield f"## {record['title']}\n"
    yield (
        f"`{record['command']}`, {record['when']}, commit {named(record['commit'])}; {machine['cores']} cores "
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

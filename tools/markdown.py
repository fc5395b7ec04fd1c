"""Markdown of the pages that are written from records."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

DIRTY = "-dirty"
"""What `source_commit` adds where files were changed and not committed."""


def is_changed(commit: str) -> bool:
    return commit.endswith(DIRTY)


def named(commit: str) -> str:
    """A commit as the pages write it."""
    return f"{commit.removesuffix(DIRTY)} with changes" if is_changed(commit) else commit


def table(headings: Sequence[object], rows: Iterable[Iterable[object]]) -> Iterator[str]:
    """The lines of a table, and the empty line after it."""
    yield _line(headings)
    yield "|" + "---|" * len(headings)
    yield from map(_line, rows)
    yield ""


def _line(cells: Iterable[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def figure(value: float | None, metric: str, digits: int = 1) -> str:
    """Percent for an accuracy, else three digits; nothing for None."""
    if value is None:
        return ""
    return f"{100 * value:.{digits}f}" if metric == "accuracy" else f"{value:.3f}"


def run_names(runs: Iterable[Path]) -> str:
    """The names of runs' folders."""
    return ", ".join(f"`{run.name}`" for run in runs)


def difference(value: float | None, paper: float | None, metric: str) -> str:
    """`value` minus the paper's figure, as `figure` shows them; nothing where one is missing."""
    if value is None or paper is None:
        return ""
    shown = figure(value - paper, metric)
    return shown if shown.startswith("-") else f"+{shown}"

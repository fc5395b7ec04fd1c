"""The progress of a command that reads a file: a bar on a terminal, else a line every ten seconds."""

import time
from collections import Counter
from collections.abc import Mapping
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

INTERVAL = 10.0
"""Seconds between two lines where there is no terminal."""


class RowProgress:
    """Counts rows, and prints how many and how fast; at the end always."""

    def __init__(self, name: str, size: int | None, console: Console) -> None:
        """`size` is the size of the source in bytes, if it is known."""
        self._name, self._size, self._console = name, size, console
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[rows]}"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task(name, total=size, rows="")
        self._started = self._printed = time.monotonic()
        self._rows = self._resumed = 0
        self._unusual: Counter[str] = Counter()

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._bar.stop()
        if kind is None:
            kinds = [(kind, count) for kind, count in self._unusual.items() if count]
            unusual = "".join(f", {count} of them {kind}" for kind, count in kinds)
            self._print(f"{self._rows} rows{unusual}; {self._speed()}")

    def resumed(self, rows: int) -> None:
        """Print that the run continues after its first `rows`."""
        self._rows = self._resumed = rows
        self._started = time.monotonic()
        self._print(f"continues after row {rows}")

    def advance(self, rows: int, read: int, unusual: Mapping[str, int]) -> None:
        """Count a chunk of rows that was written; `unusual` says what of how many, `read` is the bytes read so far."""
        self._rows += rows
        self._unusual.update(unusual)
        line = f"{self._rows} rows, {self._speed()}"
        self._bar.update(self._task, completed=read, rows=line)
        now = time.monotonic()
        if self._bar.disable and now - self._printed >= INTERVAL:
            self._printed = now
            share = f", {100 * read // self._size} % of the file" if self._size else ""
            self._print(f"{line}{share}")

    def _speed(self) -> str:
        seconds = max(time.monotonic() - self._started, 1e-3)
        return f"{(self._rows - self._resumed) / seconds:.0f} rows/s"

    def _print(self, line: str) -> None:
        self._console.print(f"{self._name}: {line}", markup=False, highlight=False)

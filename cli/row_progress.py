"""What a command that reads a file says while it runs: a bar on a terminal, a line now and then without one."""

import time
from collections import Counter
from collections.abc import Mapping
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

INTERVAL = 10.0
"""Seconds between two lines where there is no terminal."""


class RowProgress:
    """Counts rows and says how many a second were answered; the end always has its line."""

    def __init__(self, name: str, size: int | None, console: Console) -> None:
        """`size` is that of the source in bytes, if it is known."""
        self._name, self._size, self._console = name, size, console
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[said]}"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task(name, total=size, said="")
        self._started = self._said = time.monotonic()
        self._rows = self._before = 0
        self._unusual: Counter[str] = Counter()

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._bar.stop()
        if kind is None:
            unusual = "".join(f", {n} of them {what}" for what, n in self._unusual.items() if n)
            self._print(f"{self._rows} rows{unusual}; {self._speed()}")

    def resumed(self, rows: int) -> None:
        """Say that the first `rows` are there already."""
        self._rows = self._before = rows
        self._started = time.monotonic()
        self._print(f"continues after row {rows}")

    def advance(self, rows: int, read: int, unusual: Mapping[str, int]) -> None:
        """A chunk is written, in which what is `unusual` holds of so many rows; `read` bytes of the source are read."""
        self._rows += rows
        self._unusual.update(unusual)
        said = f"{self._rows} rows, {self._speed()}"
        self._bar.update(self._task, completed=read, said=said)
        now = time.monotonic()
        if self._bar.disable and now - self._said >= INTERVAL:
            self._said = now
            share = f", {100 * read // self._size} % of the file" if self._size else ""
            self._print(f"{said}{share}")

    def _speed(self) -> str:
        seconds = max(time.monotonic() - self._started, 1e-3)
        return f"{(self._rows - self._before) / seconds:.0f} rows/s"

    def _print(self, said: str) -> None:
        self._console.print(f"{self._name}: {said}", markup=False, highlight=False)

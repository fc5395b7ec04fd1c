"""Rows a second of `heedful embed --ray local` with one and with two actors, beside `heedful embed` on one core.

    python -m benchmarks.bulk [--rows 20000] [--quick]

Writes results/performance/bulk.json. A rate is that of the rows that a longer run has more than a shorter one, so
that it holds no start.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer
from pyarrow import parquet

from benchmarks import records
from benchmarks.texts import sentences

MEASURED = """Rows a second with `ms-san-embed`, parse included, Parquet in and out. Medians of alternating rounds.
`share` compares with as many times `heedful embed` on one core."""


def main(
    rows: Annotated[
        int, typer.Option(help="Rows of the shorter run; the longer has 4 times.")
    ] = 20_000,
    rounds: Annotated[int, typer.Option()] = 3,
    quick: Annotated[bool, typer.Option(help="One round of 1,000 rows: a trial.")] = False,
) -> None:
    """Measure, print, and write the record."""
    rows, rounds = (1000, 1) if quick else (rows, rounds)
    rates: dict[int, list[float]] = {0: [], 1: [], 2: []}  # by actors; 0 is `heedful embed`
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / "short.parquet", Path(folder) / "long.parquet"]
        texts = sentences(4 * rows)
        for file, part in zip(files, (texts[:rows], texts), strict=True):
            parquet.write_table(pa.table({"id": range(len(part)), "text": part}), file)
        for _ in range(rounds):
            for actors, found in rates.items():
                short, long = (_seconds(file, actors) for file in files)
                found.append(3 * rows / (long - short))
    plain, one, two = (statistics.median(found) for found in rates.values())
    table: list[records.Row] = [
        {"run": "heedful embed, one core", "rows/s": plain, "share": 1.0},
        {"run": "--ray local --actors 1", "rows/s": one, "share": one / plain},
        {"run": "--ray local --actors 2", "rows/s": two, "share": two / plain / 2},
    ]
    for row in table:
        typer.echo(row)
    typer.echo(f"two actors do {two / one:.2f} times one")
    records.write("bulk", "Files on Ray Data", records.table(MEASURED, table))


def _seconds(file: Path, actors: int) -> float:
    """Of one run, with its start."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / ("out" if actors else "out.parquet")
        program = [sys.executable, "-m", "heedful", "embed", str(file), "--model", "ms-san-embed"]
        program += ["--id-column", "id", "--out", str(out)]
        program += ["--ray", "local", "--actors", str(actors)] if actors else []
        program += ["--rows-per-file", "2000"] if actors else []
        core = min(os.sched_getaffinity(0))
        pinned = [] if actors else ["taskset", "-c", str(core)]
        started = time.monotonic()
        subprocess.run([*pinned, *program], check=True, stderr=subprocess.DEVNULL)
        return time.monotonic() - started


if __name__ == "__main__":
    typer.run(main)

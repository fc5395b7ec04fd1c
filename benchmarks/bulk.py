"""Rows a second of `heedful embed --ray local`, an actor on one core and two on two, against `heedful embed` on one.

    python -m benchmarks.bulk [--rows 20000] [--quick]

Writes results/performance/bulk.json. Rates leave out the start: for `heedful embed` they
count the rows of a longer run beyond those of a shorter one; for Ray, whose start takes 10 to 30 s, the rows between
its first file and its last.
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
from benchmarks.options import Quick, Rounds
from benchmarks.texts import sentences

ROWS_PER_FILE = 5000
MEASURED = """Rows a second with `ms-san-embed`, parse included, Parquet in and out. Medians of alternating rounds.
`share` compares with as many times `heedful embed` on one core."""


def main(
    rows: Annotated[
        int, typer.Option(help="Rows of the shorter run; the longer has 4 times.")
    ] = 20_000,
    rounds: Rounds = 3,
    quick: Quick = False,
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
            short, long = (_seconds(file) for file in files)
            rates[0].append(3 * rows / (long - short))
            for actors in (1, 2):
                rates[actors].append(_ray_rate(files[1], actors))
    plain, one_actor, two_actors = (statistics.median(runs) for runs in rates.values())
    table: list[records.Row] = [
        {"run": "heedful embed, one core", "rows/s": plain, "share": 1.0},
        {
            "run": "--ray local --actors 1, one core",
            "rows/s": one_actor,
            "share": one_actor / plain,
        },
        {
            "run": "--ray local --actors 2, two cores",
            "rows/s": two_actors,
            "share": two_actors / plain / 2,
        },
    ]
    for row in table:
        typer.echo(row)
    typer.echo(f"two actors do {two_actors / one_actor:.2f} times one")
    records.write("bulk", "Files on Ray Data", records.table(MEASURED, table))


def _on(cores: int) -> list[str]:
    """The beginning of a command that may use so many cores; Ray's own processes share them."""
    return ["taskset", "-c", ",".join(map(str, sorted(os.sched_getaffinity(0))[:cores]))]


def _seconds(file: Path) -> float:
    """Seconds of a run of `heedful embed` on one core, with its start."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.monotonic()
        _run(_on(1), file, Path(folder) / "out.parquet")
        return time.monotonic() - started


def _ray_rate(file: Path, actors: int) -> float:
    """Rows a second between the first file of each actor and the last file."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        options = ["--ray", "local", "--actors", str(actors), "--rows-per-file", str(ROWS_PER_FILE)]
        _run(_on(actors), file, out, *options)
        written = sorted((part.stat().st_mtime, part) for part in out.rglob("*.parquet"))
        # Each actor's first block ends at about the same time.
        rows: int = sum(parquet.read_metadata(part).num_rows for _, part in written[actors:])
        return rows / (written[-1][0] - written[actors - 1][0])


def _run(prefix: list[str], file: Path, out: Path, *options: str) -> None:
    program = [sys.executable, "-m", "heedful", "embed", str(file), "--model", "ms-san-embed"]
    command = [*prefix, *program, "--id-column", "id", "--out", str(out), *options]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    typer.run(main)

"""Sentences a second of the shipped encoders in this process: by length, batch, threads and precision.

    python -m benchmarks.encode [--quick]

Writes results/performance/encode.json.
"""

import typer

from benchmarks import records
from benchmarks.graphs import call_seconds, runner, sessions
from benchmarks.options import BUNDLES, Models, Quick, Rounds, Seconds
from benchmarks.processes import shipped
from heedful.runtime.bundles.bundle import read
from heedful.runtime.cores import usable_cores

LENGTHS = (12, 24, 48)
BATCHES = (1, 8, 32, 128)
ENCODED = """Sentences a second of the encoders in ONNX Runtime, without a parse, by batch size; all sentences of a
batch have length L. In float32, and in int8 if the bundle has that graph and so serves it. Medians of rounds in which
all cells alternate."""


def main(
    seconds: Seconds = 0.15, rounds: Rounds = 3, quick: Quick = False, models: Models = BUNDLES
) -> None:
    """Measure, print, and write the record."""
    seconds, rounds = (0.01, 1) if quick else (seconds, rounds)
    rows: list[dict[str, str | float | bool]] = []
    cases = []
    for name in shipped(models):
        bundle = read(models / name)
        for threads in sorted({1, usable_cores()}):
            for computed, session in sessions(bundle, threads).items():
                case = runner(bundle, session)
                for length in LENGTHS:
                    cases += [case(batch, length) for batch in BATCHES]
                    rows.append(
                        {"model": name, "computes in": computed, "threads": threads, "L": length}
                    )
    times = call_seconds(cases, rounds, seconds)
    table: list[records.Row] = []
    for number, row in enumerate(rows):
        cells = zip(BATCHES, times[number * len(BATCHES) :], strict=False)
        table.append({**row, **{f"batch {batch}": batch / each for batch, each in cells}})
        typer.echo(table[-1])
    records.write("encode", "The encoders alone", records.table(ENCODED, table))


if __name__ == "__main__":
    typer.run(main)

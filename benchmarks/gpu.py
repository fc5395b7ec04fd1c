"""Sentences a second of the shipped encoders on a GPU, and on one core of the same machine.

    python -m benchmarks.gpu [--quick]

Writes results/performance/gpu.json. Fails where no CUDA comes up. `make gpu-check` runs it.
"""

import typer

from benchmarks import records
from benchmarks.graphs import call_seconds, plain, runner
from benchmarks.options import BUNDLES, Models, Quick, Rounds, Seconds
from benchmarks.processes import shipped
from heedful.runtime.bundles.bundle import read
from heedful.runtime.loaded_model import LoadedModel

LENGTHS = (12, 24, 48)
BATCHES = (1, 32, 256, 1024)
MEASURED = """Sentences a second in float32, without a parse, by batch size; all sentences of a batch have length L.
Input and output are copied to and from the device for every batch, as the service does. Medians of rounds."""


def main(
    seconds: Seconds = 0.3,
    rounds: Rounds = 3,
    quick: Quick = False,
    models: Models = BUNDLES,
) -> None:
    """Measure, print, and write the record."""
    seconds, rounds = (0.01, 1) if quick else (seconds, rounds)
    table: list[records.Row] = []
    for name in shipped(models):
        bundle = read(models / name)
        for session in (LoadedModel(bundle, "cuda", 1).encoder.session, plain(bundle, 1)):
            case = runner(bundle, session)
            for length in LENGTHS:
                times = call_seconds([case(size, length) for size in BATCHES], rounds, seconds)
                cells = {f"batch {n}": n / each for n, each in zip(BATCHES, times, strict=True)}
                table.append({"model": name, "on": session.provider, "L": length, **cells})
                typer.echo(table[-1])
    records.write("gpu", "On a GPU, the encoders alone", records.table(MEASURED, table))


if __name__ == "__main__":
    typer.run(main)

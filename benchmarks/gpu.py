"""Sentences a second of the shipped encoders on a GPU, beside one core of the same machine.

    python -m benchmarks.gpu [--quick]

Writes results/performance/gpu.json. Fails where no CUDA comes up. `make gpu-check` runs it.
"""

from pathlib import Path
from typing import Annotated

import typer

from benchmarks import records
from benchmarks.graphs import plain, runner, seconds
from benchmarks.processes import shipped
from heedful.runtime.bundle import read
from heedful.runtime.loaded_model import LoadedModel

LENGTHS = (12, 24, 48)
BATCHES = (1, 32, 256, 1024)
MEASURED = """Sentences a second in float32, without a parse, by batch size; all sentences of a batch have length L.
Input and output are copied to and from the device for every batch, as the service does. Medians of rounds."""


def main(
    lasting: Annotated[float, typer.Option(help="Seconds of a cell in a round.")] = 0.3,
    rounds: Annotated[int, typer.Option()] = 3,
    quick: Annotated[bool, typer.Option(help="One round of 10 ms a cell: a trial.")] = False,
    models: Annotated[Path, typer.Option(help="Folder of the bundles.")] = Path("bundles"),
) -> None:
    """Measure, print, and write the record."""
    lasting, rounds = (0.01, 1) if quick else (lasting, rounds)
    table: list[records.Row] = []
    for name in shipped(models):
        bundle = read(models / name)
        for session in (LoadedModel(bundle, "cuda", 1).encoder.session, plain(bundle, 1)):
            case = runner(bundle, session)
            for length in LENGTHS:
                times = seconds([case(size, length) for size in BATCHES], rounds, lasting)
                cells = {f"batch {n}": n / each for n, each in zip(BATCHES, times, strict=True)}
                table.append({"model": name, "on": session.provider, "L": length, **cells})
                typer.echo(table[-1])
    records.write("gpu", "On a GPU, the encoders alone", records.table(MEASURED, table))


if __name__ == "__main__":
    typer.run(main)

"""What a GPU gives, beside the CPUs of the same machine: python -m benchmarks.gpu

Parity, encoders, the service, memory and an epoch of training, in under ten minutes. `make gpu-check` runs it.
With a GPU it writes results/gpu/gpu.json and, from it, the tables of docs/gpu.md. `--device cpu --quick` rehearses: the
same code with small sizes and without a GPU, whose figures say nothing and are printed only. Ends with status 1 where
a vector is too far from the CPU's, memory grows, or there is no GPU.
"""

import subprocess
from pathlib import Path
from typing import Annotated

import typer

from benchmarks import records
from benchmarks.gpu import encoders, service, training
from benchmarks.options import BUNDLES, Data, Models, Quick
from benchmarks.processes import shipped
from benchmarks.report import record_section
from benchmarks.texts import DATA
from heedful.files.atomic import write_file, write_json
from heedful.runtime.cores import usable_cores
from heedful.runtime.device import Resolved, limit_memory, resolve
from heedful.runtime.errors import ProviderError

FOLDER, PAGE = Path("results/gpu"), Path("docs/gpu.md")
BEGIN, END = "<!-- written by make gpu-check -->", "<!-- to here -->"
"""Between them the page has the record."""
QUICK = encoders.Sizes((1, 8), 0.01, 1, 20, 64)
TRAINED = 100_000, 2_000
"""Pairs of an epoch, and of a rehearsal's."""


def main(
    device: Annotated[Resolved, typer.Option(help="cpu is a rehearsal.")] = "cuda",
    quick: Quick = False,
    name: Annotated[list[str], typer.Option(help="Bundles; default all that are shipped.")] = [],  # noqa: B006
    models: Models = BUNDLES,
    data: Data = DATA,
) -> None:
    """Measure, print, and write what a GPU gave."""
    try:
        resolve(device)
    except ProviderError as error:
        typer.echo(f"no GPU is measured: {error}", err=True)
        raise typer.Exit(1) from None
    if device == "cuda":
        limit_memory(1)  # an arena, as in the service
    sizes, names = QUICK if quick else encoders.Sizes(), name or shipped(models)
    parity = encoders.parity(models, names, device)
    typer.echo(parity)
    rates = encoders.rates(models, names, device, sizes)
    typer.echo(rates)
    memory = encoders.memory(models, names[0], device, sizes)
    typer.echo(memory)
    seconds, rounds, processes = (1, 1, 1) if quick else (4, 3, usable_cores())
    served = service.service(models, device, seconds, rounds, data, processes)
    typer.echo(served)
    trained = training.training(device, TRAINED[quick], data, models / "parser")
    record = records.record(
        "gpu",
        f"Measured on {_device(device)}",
        records.table(encoders.PARITY, parity),
        records.table(encoders.RATES, rates),
        records.table(service.SERVICE, served),
        records.table(encoders.MEMORY, memory),
        records.table(training.TRAINING, trained),
    )
    section = "\n".join(record_section(record))
    if device == "cuda" and not quick:
        FOLDER.mkdir(parents=True, exist_ok=True)
        write_json(FOLDER / "gpu.json", record)
        page = inserted(PAGE.read_text("utf-8"), section)
        write_file(PAGE, lambda part: part.write_text(page, encoding="utf-8"))
    typer.echo(section)
    raise typer.Exit(int(not all(row["allowed"] for row in (*parity, *memory))))


def inserted(page: str, section: str) -> str:
    """The page with this section in place of what is between BEGIN and END. Raises ValueError without them."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"the page does not hold {BEGIN} and then {END}")
    return f"{before}{BEGIN}\n{section.strip()}\n{END}{after}"


def _device(device: Resolved) -> str:
    """The device's name, memory and driver."""
    if device == "cpu":
        return "the CPU: a rehearsal"
    command = [
        "nvidia-smi",
        "--query-gpu=name,memory.total,driver_version",
        "--format=csv,noheader",
    ]
    lines = subprocess.run(command, capture_output=True, check=True, text=True).stdout.splitlines()
    return f"one of {len(lines)}: {lines[0]}" if len(lines) > 1 else lines[0]


if __name__ == "__main__":
    typer.run(main)

"""The service beside NVIDIA's driver without the rest of CUDA, and without either: python -m benchmarks.driver

A library that reports one device replaces the driver; both services run on the CPU. They take turns with single
sentences at c = 64 in one run, so that other load on the machine counts for both. Prints requests/s, processor time
a request, and their ratios. Ends with status 1 where a median of the ratios of rates is more than 3 % off.
"""

import statistics
import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path

import typer

from benchmarks.load import requests
from benchmarks.options import BUNDLES, Data, Models, Rounds, Seconds
from benchmarks.processes import THIS, Server, bundles, heedful
from benchmarks.texts import DATA, sentences

MODELS = ("disan-sst5", "ms-san-embed")
CONNECTIONS, SENTENCES = 64, 12_800
ALLOWED = 0.03
SOURCE = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static int note_call(void) {
  FILE *calls = fopen(getenv("CUDA_CALLS"), "a");
  fprintf(calls, "%d\\n", getpid());
  fclose(calls);
  return 0;
}
int cuInit(unsigned flags) { return note_call(); }
int cuDeviceGet(int *device, int number) { return note_call(); }
int cuDeviceGetCount(int *count) { *count = 1; return note_call(); }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { *bytes = atoll(getenv("CUDA_MEMORY")); return note_call(); }
"""
"""The functions of NVIDIA's driver that tell whether there is a device. Each call writes its process's id to a file."""


def build_driver(folder: Path) -> dict[str, str]:
    """Compile the driver into `folder`; returns the environment variables with which a program finds it."""
    command = ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(folder / "libcuda.so.1")]
    subprocess.run(command, input=SOURCE, text=True, check=True)
    return {"LD_LIBRARY_PATH": str(folder), "CUDA_CALLS": str(folder / "calls")}


def main(
    seconds: Seconds = 4, rounds: Rounds = 5, models: Models = BUNDLES, data: Data = DATA
) -> None:
    """Measure and print."""
    texts = sentences(SENTENCES, data)
    misses = False
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        served = stack.enter_context(bundles(MODELS, models)).resolve()
        servers: list[Server] = []
        for env in (build_driver(folder), {}):
            servers.append(stack.enter_context(heedful(served, THIS, env=env, device="auto")))
        for model in MODELS:
            loops = [requests(each.url, model, texts, 1) for each in servers]
            for loop in loops:
                loop.run(CONNECTIONS, 1)  # every word has been read
            rates: list[list[float]] = [[], []]
            costs: list[list[float]] = [[], []]
            for turn in range(rounds):
                for which in (0, 1) if turn % 2 else (1, 0):
                    before = servers[which].processor_seconds()
                    load = loops[which].run(CONNECTIONS, seconds)
                    spent = servers[which].processor_seconds() - before
                    rates[which].append(load.requests_per_second)
                    costs[which].append(1e6 * spent / load.requests)
            ratio = statistics.median(a / b for a, b in zip(*rates, strict=True))
            cost = statistics.median(a / b for a, b in zip(*costs, strict=True))
            misses |= abs(ratio - 1) > ALLOWED
            medians = [f"{statistics.median(rate):,.0f}" for rate in rates]
            typer.echo(
                f"{model}: {medians[0]} requests/s with the driver, {medians[1]} without: {ratio:.3f}; "
                f"µs a request {statistics.median(costs[0]):.0f} and {statistics.median(costs[1]):.0f}: {cost:.3f}"
            )
    raise typer.Exit(int(misses))


if __name__ == "__main__":
    typer.run(main)

"""The service on a device beside the service on the CPUs of the same machine, in turns of one run."""

import statistics
from contextlib import ExitStack
from pathlib import Path

from benchmarks.load import MAX_QUEUE, SENTENCES, requests
from benchmarks.processes import THIS, bundles, heedful
from benchmarks.records import Row
from benchmarks.texts import sentences
from heedful.runtime.device import Resolved

MODELS = ("ms-san-embed", "ms-san-sst2")
"""One without a parse, one with."""
LOADS = ((8, 256, 2.5), (64, 1, 1.0), (1, 1, 0.0))
"""Connections, texts a request, and how many times the CPUs' rate is the goal."""
SERVICE = """`POST /embed` over HTTP, caches off, a process a core on both; the load generator shares the cores. Texts a
second: medians of turns. The ratio is the median of the turns'."""


def service(
    folder: Path, device: Resolved, seconds: float, rounds: int, data: Path, processes: int
) -> list[Row]:
    """Raises ServerFailed, LoadFailed, DataMissing."""
    texts = sentences(SENTENCES, data)
    rows: list[Row] = []
    with ExitStack() as stack:
        served = stack.enter_context(bundles(MODELS, folder)).resolve()
        urls = []
        for place in (device, "cpu"):
            server = heedful(served, THIS, device=place, processes=processes, max_queue=MAX_QUEUE)
            urls.append(stack.enter_context(server).url)
        for model in MODELS:
            for connections, size, goal in LOADS:
                loops = [requests(url, model, texts, size) for url in urls]
                for loop in loops:
                    loop.run(connections, 1)  # every word has been read
                turns = [[loop.run(connections, seconds) for loop in loops] for _ in range(rounds)]
                rates = [[size * load.requests_per_second for load in turn] for turn in turns]
                ratio = statistics.median(there / here for there, here in rates)
                there, on_cpus = (statistics.median(column) for column in zip(*rates, strict=True))
                row = {"model": model, "connections": str(connections), "texts": str(size)}
                p50 = statistics.median(turn[0].p50 for turn in turns)
                met = "" if not goal else f"{goal} x: {'met' if ratio >= goal else '**missed**'}"
                more = {"device": there, "CPUs": on_cpus, "ratio": ratio, "p50 ms": p50}
                rows.append({**row, **more, "goal": met})
    return rows

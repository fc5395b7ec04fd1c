"""The overhead of the service over bare loops of parser and models, and of HTTP over direct calls.

    python -m benchmarks.overhead [--quick]

Writes results/performance/overhead.json. The two sides of a comparison take turns.
"""

import asyncio
import statistics
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import typer

from benchmarks import records
from benchmarks.closed_loop import Closed
from benchmarks.load import MAX_QUEUE, requests
from benchmarks.options import BUNDLES, Data, Models, Quick, Rounds, Seconds
from benchmarks.processes import bundles, heedful
from benchmarks.texts import DATA, sentences
from benchmarks.workers import rate, worker
from heedful.runtime.cores import usable_cores
from heedful.runtime.engine.session import BUDGET
from heedful.runtime.inputs import Inputs
from heedful.runtime.service import Options, Service, running

MODELS = ("disan-sst5", "ms-san-embed")
BATCH = 64
CONCURRENCY = (2, 8, 16)
"""Requests of 64 sentences in flight: the best one counts."""
COSTS = (BUDGET, 512)
"""Tokens in a batch of the bare loop: the best one counts."""
SENTENCES, ROUND_SENTENCES = 12_800, 2048
LIMIT = f"""Batches of {BATCH} over HTTP as a share of the limit: as many processes as cores, each of which parses
and runs the encoder on one thread in a bare loop, with the best batching. Both have read the sentences before. The
load generator shares the cores."""
ADDED = """One request at a time, one sentence each, no cache: p50 of alternating blocks. Without HTTP, `Service` is
called in the measuring process, as the routes call it for the only request; over HTTP, wrk sends the requests."""


def main(
    seconds: Seconds = 5,
    rounds: Rounds = 3,
    quick: Quick = False,
    models: Models = BUNDLES,
    data: Data = DATA,
) -> None:
    """Measure, print, and write the record."""
    seconds, rounds = (1, 1) if quick else (seconds, rounds)
    texts = sentences(SENTENCES, data)
    shares, added = [], []
    for model in MODELS:
        with bundles([model], models) as folder:
            shares.append(_share(folder, model, texts, rounds, seconds))
            typer.echo(shares[-1])
            added.append(asyncio.run(_added(folder, model, texts, rounds, seconds)))
            typer.echo(added[-1])
    records.write(
        "overhead",
        "What the service adds",
        records.table(LIMIT, shares),
        records.table(ADDED, added),
        goals={
            "share of the limit": min(row["share %"] for row in shares),
            "added latency": max(row["added ms"] for row in added),
        },
    )


def _share(
    folder: Path, model: str, texts: Sequence[str], rounds: int, seconds: float
) -> dict[str, Any]:
    """Sentences a second of the bare loops and of the service."""
    with ExitStack() as stack:
        loops = {
            cost: [
                stack.enter_context(
                    worker(sys.executable, "-m", "benchmarks.bare", folder, model, str(cost))
                )
                for _ in range(usable_cores())
            ]
            for cost in COSTS
        }
        for workers in loops.values():
            rate(workers, texts)
        trial = {cost: rate(workers, texts[:ROUND_SENTENCES]) for cost, workers in loops.items()}
        best = max(COSTS, key=lambda cost: trial[cost])
        server = stack.enter_context(heedful(folder, max_queue=MAX_QUEUE))
        load = requests(server.url, model, list(texts), BATCH)
        over_http = {c: BATCH * load.run(c, seconds).requests_per_second for c in CONCURRENCY}
        connections = max(CONCURRENCY, key=lambda c: over_http[c])
        pairs = []
        for number in range(rounds):
            start = (1 + number) * ROUND_SENTENCES
            limit = rate(loops[best], texts[start : start + ROUND_SENTENCES])
            pairs.append((limit, BATCH * load.run(connections, seconds).requests_per_second))
    limit, served = (statistics.median(side) for side in zip(*pairs, strict=True))
    return {
        "model": model,
        "processes": usable_cores(),
        "tokens in a batch": best,
        "limit, sentences/s": limit,
        "c": connections,
        "service, sentences/s": served,
        "share %": 100 * statistics.median(service / limit for limit, service in pairs),
    }


async def _added(
    folder: Path, model: str, texts: Sequence[str], rounds: int, seconds: float
) -> dict[str, Any]:
    """p50 in ms of a call in this process, and of a request."""
    async with running(Options(models=folder)) as service:
        with heedful(folder) as server:
            load = Closed(
                server.url, "/embed", [{"inputs": text, "model": model} for text in texts]
            )
            pairs = []
            for number in range(rounds + 1):
                called = await _call(service, model, texts, seconds)
                over_http = await asyncio.to_thread(load.run, 1, seconds)
                pairs.append((called, over_http.p50))
                if number == 0:
                    pairs.clear()  # the first round warms both up
    called_ms, http_ms = (statistics.median(side) for side in zip(*pairs, strict=True))
    return {
        "model": model,
        "called, p50 ms": called_ms,
        "over HTTP, p50 ms": http_ms,
        "added ms": statistics.median(http - called for called, http in pairs),
    }


async def _call(service: Service, model: str, texts: Sequence[str], seconds: float) -> float:
    """p50 in ms of consecutive calls."""
    times: list[float] = []
    until = time.perf_counter() + seconds
    while (started := time.perf_counter()) < until:
        inputs = Inputs.from_texts([texts[len(times) % len(texts)]])
        await service.answer(service.bind("embed", model).embed(inputs))
        times.append(1000 * (time.perf_counter() - started))
    return statistics.median(times)


if __name__ == "__main__":
    typer.run(main)

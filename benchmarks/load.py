"""The service over HTTP: an open loop, then closed loops of single sentences and of batches.

    python -m benchmarks.load [--url URL] [--model disan-sst5] [--quick]

Without a URL it serves the shipped bundles itself, caches off, and writes results/performance/load.json.
Sentences are distinct; the load shares the cores with the server.
"""

import statistics
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Annotated, Any

import httpx
import typer
from prometheus_client.parser import text_string_to_metric_families

from benchmarks import records
from benchmarks.closed_loop import Closed
from benchmarks.open_loop import CONNECTIONS, at_rate
from benchmarks.options import BUNDLES, Data, Models, Quick, Rounds, Seconds
from benchmarks.processes import Server, heedful
from benchmarks.texts import DATA, groups, sentences

MODELS = ("disan-sst5", "ms-san-embed")
"""One model without a parse, one with."""
CONCURRENCY = (1, 16, 64, 256)
BATCHES = (1, 64)
SENTENCES = 12_800
MAX_QUEUE = 32_768
"""256 batches of 64 are in flight, and half as many wait."""
SHARE = 0.7
"""The open loop's share of the saturation rate."""
SATURATED = 64
"""Connections at which the rate counts as saturation."""
CLOSED = """Closed loop (wrk): each connection sends its next request when it has the answer to the last. Memory is that
of the server's process tree with every shipped bundle loaded; the cores used do not include the load generator's.
The last column is processor time of the server for a request, less that of the encoder's batches as the service
counts it (`heedful_encoder_cpu_seconds_total`), in whichever thread they run."""
OPEN = f"""Open loop at {100 * SHARE:.0f} % of the rate at c = {SATURATED}, single sentences: requests leave at fixed
times on {CONNECTIONS} connections, more where none is free, and latency counts from the moment a request was due.
Medians of alternating saturation and open-loop rounds."""


def main(
    url: Annotated[
        str | None, typer.Option(help="A running server; default: one is started.")
    ] = None,
    model: Annotated[list[str], typer.Option(help="Bundles to ask.")] = list(MODELS),  # noqa: B006
    concurrency: Annotated[list[int], typer.Option()] = list(CONCURRENCY),  # noqa: B006
    batch: Annotated[list[int], typer.Option(help="Sentences in a request.")] = list(BATCHES),  # noqa: B006
    seconds: Seconds = 5,
    rounds: Rounds = 5,
    quick: Quick = False,
    models: Models = BUNDLES,
    data: Data = DATA,
) -> None:
    """Measure, print, and write the record."""
    seconds, rounds = (1, 1) if quick else (seconds, rounds)
    texts = sentences(SENTENCES, data)
    serving: AbstractContextManager[Server | None] = (
        nullcontext() if url else heedful(models, max_queue=MAX_QUEUE, request_timeout=300)
    )
    with serving as server:
        address = server.url if server else str(url)
        closed, opened = [], []
        for name in model:
            opened.append(_open(address, name, texts, seconds, rounds))
            typer.echo(_line(opened[-1]))
            for size in batch:
                for row in _closed(address, server, name, texts, size, concurrency, seconds):
                    typer.echo(_line(row))
                    closed.append(row)
    if not url:
        goals = {"tail": max(row["p99 / p50"] for row in opened)}
        for row in closed:
            if (row["model"], row["batch"], row["c"]) == (MODELS[0], 1, SATURATED):
                goals["processor time"] = row["µs beside encoding"]
        records.write(
            "load",
            "Over HTTP",
            records.table(CLOSED, closed),
            records.table(OPEN, opened),
            goals=goals,
        )


def requests(url: str, model: str, texts: list[str], size: int) -> Closed:
    """A closed loop of single sentences (`size` 1, a bare string), or of lists of `size`."""
    bodies: list[Any] = list(texts) if size == 1 else groups(texts, size)
    return Closed(url, "/embed", [{"inputs": inputs, "model": model} for inputs in bodies])


def _closed(
    url: str,
    server: Server | None,
    model: str,
    texts: list[str],
    size: int,
    concurrency: list[int],
    seconds: float,
) -> Iterator[dict[str, Any]]:
    """A closed loop at each concurrency; for a server that this program started also its memory and cores."""
    load = requests(url, model, texts, size)
    for connections in concurrency:
        before = _processor_seconds(server)
        started = time.perf_counter()
        result = load.run(connections, seconds)
        elapsed = time.perf_counter() - started
        row = {
            "model": model,
            "batch": size,
            "c": connections,
            "requests/s": result.requests_per_second,
            "sentences/s": size * result.requests_per_second,
            "p50 ms": result.p50,
            "p90 ms": result.p90,
            "p99 ms": result.p99,
        }
        if server:
            total, encoding = (
                after - first
                for after, first in zip(_processor_seconds(server), before, strict=True)
            )
            row["cores used"] = total / elapsed
            row["PSS MB"] = server.memory()
            row["µs beside encoding"] = 1e6 * (total - encoding) / result.requests
        yield row


def _processor_seconds(server: Server | None) -> tuple[float, float]:
    """Processor seconds of the server, and of its encoders' batches."""
    if server is None:
        return 0.0, 0.0
    page = httpx.get(f"{server.url}/metrics").text
    encoding = sum(
        sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name == "heedful_encoder_cpu_seconds_total"
    )
    return server.processor_seconds(), encoding


def _open(url: str, model: str, texts: list[str], seconds: float, rounds: int) -> dict[str, Any]:
    """Alternating saturation and open-loop rounds at `SHARE` of it; their medians."""
    bodies = [{"inputs": text, "model": model} for text in texts]
    measurements = []
    for _ in range(rounds):
        saturation = requests(url, model, texts, 1).run(SATURATED, seconds).requests_per_second
        arrivals = at_rate(url, "/embed", bodies, SHARE * saturation, seconds)
        measurements.append(
            {
                "saturation/s": saturation,
                "sent/s": arrivals.rate,
                "p50 ms": arrivals.p50,
                "p90 ms": arrivals.p90,
                "p99 ms": arrivals.p99,
                "p99 / p50": arrivals.p99 / arrivals.p50,
            }
        )
    medians = {
        key: statistics.median(each[key] for each in measurements) for key in measurements[0]
    }
    return {"model": model, "rounds": rounds, **medians}


def _line(row: dict[str, Any]) -> str:
    return "  ".join(
        f"{k} {v:,.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items()
    )


if __name__ == "__main__":
    typer.run(main)

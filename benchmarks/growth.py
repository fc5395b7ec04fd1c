"""How the cost grows with the length, the batch, the number of models and the depth of the queue.

    python -m benchmarks.growth [--quick]

Writes results/performance/growth.json. `--seconds` are those of a load, `--rounds` those of the graphs.
"""

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import typer

from benchmarks import records
from benchmarks.closed_loop import Closed
from benchmarks.graphs import call_seconds, plain, runner
from benchmarks.operations import count
from benchmarks.options import BUNDLES, Data, Models, Quick, Rounds, Seconds
from benchmarks.processes import bundles, heedful, shipped
from benchmarks.texts import DATA, sentences
from heedful.models.registry import build
from heedful.runtime.bundles.bundle import read

MODELS = ("disan-sst5", "ms-san-sst5")
LENGTHS = (12, 24, 48)
TOKENS = 480
"""Tokens per batch when the length varies."""
BATCHES = (1, 4, 16, 64, 256)
DEPTHS = (16, 64, 256, 1024)
"""Requests in flight."""
SENTENCES, SATURATED = 12_800, 64
LENGTH = f"""With the length: processor time of one thread, batches of {TOKENS} tokens. "Operations" are millions
per sentence (`benchmarks/operations.py` defines them); the next columns compare time and operations of a sentence
with those of one of {LENGTHS[0]} tokens, the last column is their ratio."""
BATCH = f"""With the batch: microseconds of processor time per sentence of {LENGTHS[0]} tokens, one thread."""
NUMBER = f"""With the number of models that are loaded and called in turn: single sentences at c = {SATURATED}."""
DEPTH = (
    f"""With the depth of the queue: single sentences to `{MODELS[0]}`, with that many in flight."""
)


def main(
    seconds: Seconds = 5,
    rounds: Rounds = 7,
    quick: Quick = False,
    models: Models = BUNDLES,
    data: Data = DATA,
) -> None:
    """Measure, print, and write the record."""
    seconds, rounds = (1, 1) if quick else (seconds, rounds)
    texts = sentences(SENTENCES, data)
    by_length = _printed(row for model in MODELS for row in _lengths(models / model, rounds))
    by_batch = _printed(_batches(models / model, rounds) for model in MODELS)
    by_number = _printed(_numbers(models, texts, seconds))
    by_depth = _printed(_depths(models, texts, seconds))
    records.write(
        "growth",
        "How the cost grows",
        records.table(LENGTH, by_length),
        records.table(BATCH, by_batch),
        records.table(NUMBER, by_number),
        records.table(DEPTH, by_depth),
        goals={"growth": max(row["time / operations"] for row in by_length)},
    )


def _printed(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows, each printed once it is measured."""
    measured = []
    for row in rows:
        typer.echo(row)
        measured.append(row)
    return measured


def _lengths(folder: Path, rounds: int) -> list[dict[str, Any]]:
    bundle = read(folder)
    encoder, config = bundle.card.encoder, bundle.card.encoder.config
    module, case = build(encoder.name, config), runner(bundle, plain(bundle, 1))
    dim = config["dim"]
    assert isinstance(dim, int), "every card names the size of a word vector"
    operations = [count(module, length, dim) for length in LENGTHS]
    cases = [case(TOKENS // length, length) for length in LENGTHS]
    times = call_seconds(cases, rounds, 0.3, time.process_time)
    each = [spent * length / TOKENS for spent, length in zip(times, LENGTHS, strict=True)]
    return [
        {
            "model": bundle.card.name,
            "L": length,
            "sentences/s": 1 / spent,
            "operations": number / 1e6,
            "time": spent / each[0],
            "operations over the first": number / operations[0],
            "time / operations": (spent / each[0]) / (number / operations[0]),
        }
        for length, spent, number in zip(LENGTHS, each, operations, strict=True)
    ]


def _batches(folder: Path, rounds: int) -> dict[str, Any]:
    bundle = read(folder)
    case = runner(bundle, plain(bundle, 1))
    cases = [case(batch, LENGTHS[0]) for batch in BATCHES]
    times = call_seconds(cases, rounds, 0.2, time.process_time)
    cells = {f"batch {b}": 1e6 * t / b for b, t in zip(BATCHES, times, strict=True)}
    return {"model": bundle.card.name, **cells}


def _numbers(models: Path, texts: list[str], seconds: float) -> Iterator[dict[str, Any]]:
    names = shipped(models)
    for number in sorted({1, (1 + len(names)) // 2, len(names)}):
        chosen = names[-number:]
        with bundles(chosen, models) as folder, heedful(folder) as server:
            bodies = [{"inputs": text, "model": chosen[i % number]} for i, text in enumerate(texts)]
            load = Closed(server.url, "/embed", bodies).run(SATURATED, seconds)
            yield {
                "models": number,
                "requests/s": load.requests_per_second,
                "p50 ms": load.p50,
                "p99 ms": load.p99,
                "ready s": server.ready_seconds,
                "PSS MB": server.memory(),
            }


def _depths(models: Path, texts: list[str], seconds: float) -> Iterator[dict[str, Any]]:
    with bundles([MODELS[0]], models) as folder, heedful(folder) as server:
        loop = Closed(server.url, "/embed", [{"inputs": text} for text in texts])
        for depth in DEPTHS:
            load = loop.run(depth, seconds)
            yield {
                "in flight": depth,
                "requests/s": load.requests_per_second,
                "p50 ms": load.p50,
                "p99 ms": load.p99,
                "p50 / in flight, ms": load.p50 / depth,
            }


if __name__ == "__main__":
    typer.run(main)

"""Time from start to ready, and the memory of the process tree then and after load.

    python -m benchmarks.startup [--quick]

Writes results/performance/startup.json. The service is as shipped, its caches too.
"""

import statistics
from collections.abc import Sequence
from typing import Any

import typer

from benchmarks import records
from benchmarks.load import requests
from benchmarks.options import BUNDLES, Data, Models, Quick, Rounds, Seconds
from benchmarks.processes import bundles, heedful, shipped
from benchmarks.texts import DATA, sentences

MS_SAN = "ms-san-nli"
"""Among the largest bundles."""
SENTENCES, CONCURRENCY = 12_800, 16
STARTED = """Time from the start of the process to the first 200 of `/ready`, and memory (PSS) of all its processes then
and after single sentences at c = 16, caches as shipped. Medians of alternating starts."""


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
    names = shipped(models)
    choices: dict[str, Sequence[str]] = {MS_SAN: [MS_SAN], f"all {len(names)}": names}
    starts_by_choice: dict[str, list[dict[str, float]]] = {name: [] for name in choices}
    for _ in range(rounds):
        for name, chosen in choices.items():
            with bundles(chosen, models) as folder, heedful(folder, caches=True) as server:
                row = {
                    "ready s": server.ready_seconds,
                    "processes": len(server.tree()),
                    "PSS MB at ready": server.memory(),
                }
                requests(server.url, MS_SAN, texts, 1).run(CONCURRENCY, seconds)
                starts_by_choice[name].append({**row, "PSS MB after load": server.memory()})
    rows: list[dict[str, Any]] = []
    for name, starts in starts_by_choice.items():
        medians = {
            column: statistics.median(start[column] for start in starts) for column in starts[0]
        }
        rows.append({"bundles": name, **medians})
        typer.echo(rows[-1])
    records.write(
        "startup",
        "Start and memory",
        records.table(STARTED, rows),
        goals={"ready": rows[1]["ready s"], "memory": rows[0]["PSS MB after load"]},
    )


if __name__ == "__main__":
    typer.run(main)

"""The supervisor beside uvicorn's process manager and SO_REUSEPORT: the same application, two serving processes.

    python -m benchmarks.process_models [--rounds 3]

Writes results/performance/process_models.json. One server is up at a time, each once a round.
"""

import asyncio
import os
import signal
import statistics
import sys
from collections import Counter
from contextlib import AbstractContextManager
from pathlib import Path

import typer

from benchmarks import records
from benchmarks.closed_loop import Closed, Load
from benchmarks.options import BUNDLES, Data, Models, Rounds, Seconds
from benchmarks.processes import Server, free_port, serving
from benchmarks.texts import DATA, sentences
from tests.load import Body, load

MODEL = "disan-sst5"
PROCESSES = 2
CONNECTIONS = (64, 4)
CLIENTS = 8
SENTENCES = 12_800
SUPERVISOR = "heedful's supervisor"
WAYS = {"uvicorn's process manager": "uvicorn", "SO_REUSEPORT": "reuseport"}
MEASURED = f"""Single sentences to `{MODEL}` over HTTP, distinct, the cache off, {PROCESSES} serving processes (wrk);
few connections may fall to the processes unevenly. `killed`: how {CLIENTS} clients' requests ended when one serving
process was killed among them. Medians of the rounds; the ends are those of all rounds."""


def main(
    seconds: Seconds = 4,
    rounds: Rounds = 3,
    models: Models = BUNDLES,
    data: Data = DATA,
) -> None:
    """Measure, print, and write the record."""
    bodies: list[Body] = [{"inputs": text, "model": MODEL} for text in sentences(SENTENCES, data)]
    found: dict[str, dict[int, list[Load]]] = {}
    ends: dict[str, Counter[str]] = {}
    for _ in range(rounds):
        for name in (SUPERVISOR, *WAYS):
            with _server(name, models.resolve()) as server:
                closed = Closed(server.url, "/embed", bodies)
                closed.run(max(CONNECTIONS), 2)
                for connections in CONNECTIONS:
                    loads = found.setdefault(name, {}).setdefault(connections, [])
                    loads.append(closed.run(connections, seconds))
                    typer.echo(f"{name}, c = {connections}: {loads[-1]}")
                ends.setdefault(name, Counter()).update(asyncio.run(_killed(server, bodies)))
                typer.echo(f"{name}, killed: {ends[name]}")
    rows: list[records.Row] = [
        {
            "processes managed by": name,
            **{
                f"c = {connections}, {what}": statistics.median(
                    getattr(one, field) for one in loads
                )
                for connections, loads in by_connections.items()
                for what, field in (("requests/s", "requests_per_second"), ("p99 ms", "p99"))
            },
            "killed": ", ".join(f"{end}: {count}" for end, count in sorted(ends[name].items())),
        }
        for name, by_connections in found.items()
    ]
    records.write("process_models", "Process models", records.table(MEASURED, rows))


def _server(name: str, bundles: Path) -> AbstractContextManager[Server]:
    port = free_port()
    arguments = ["heedful", "serve"]
    if name in WAYS:
        arguments = ["benchmarks.listeners", WAYS[name], str(port), str(PROCESSES)]
    env = {
        "HEEDFUL_MODELS": str(bundles),
        "HEEDFUL_CACHE_ITEMS": "0",
        "HEEDFUL_THREADS": "1",
        "HEEDFUL_PROCESSES": "1" if name in WAYS else str(PROCESSES),
        "HEEDFUL_PORT": str(port),
    }
    command = [sys.executable, "-m", *arguments]
    return serving(command, f"http://127.0.0.1:{port}", "/ready", env=env)


async def _killed(server: Server, bodies: list[Body]) -> dict[str, int]:
    """How requests ended while one serving process was killed."""

    def ask(number: int) -> tuple[str, Body]:
        return "/embed", bodies[number % len(bodies)]

    async with load(server.url, ask) as clients, clients.beside(CLIENTS):
        await asyncio.sleep(0.5)
        os.kill(max(server.tree(), key=_memory), signal.SIGKILL)
        await asyncio.sleep(1.5)
    return clients.statuses()


def _memory(pid: int) -> int:
    """Pages in memory: those of a serving process are most."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1])


if __name__ == "__main__":
    typer.run(main)

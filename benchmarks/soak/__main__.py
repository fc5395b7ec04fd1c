"""Runs the scenarios at length on the shipped bundles and writes docs/reliability.md from the measurements.

    python -m benchmarks.soak [--minutes 30] [--overload 60] [--only NAME ..] [--out FILE]

A failed assertion ends the program; a figure over its limit is reported as such, and the exit status is 1.
"""

import asyncio
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from benchmarks.soak import abuse, chaos, endurance, scenarios
from heedful.runtime.cores import usable_cores
from heedful.training.source_commit import source_commit
from tests.process import ROOT

Result = tuple[Any, str, bool]
"""The measurement, the requirement, and whether it holds."""

READY_SECONDS = 10.0
GROWTH = 5.0  # percent, under overload
MIXED_GROWTH = 2.0  # percent
SETTLED = 1 / 6  # of the time: 5 of 30 minutes
LATENCY = 2.0  # times what it was
HEALTH_SECONDS = 1.0
HEADERS_MB = 20.0
PIPELINES_MB = 100.0
SHUTDOWN_SECONDS = 10.0


def main(
    minutes: Annotated[float, typer.Option(help="Length of the mixed traffic.")] = 30,
    overload: Annotated[float, typer.Option(help="Seconds of overload.")] = 60,
    only: Annotated[list[str] | None, typer.Option(help="Run these, keep the rest.")] = None,
    out: Annotated[
        Path, typer.Option(help="The page; its figures go into a .json file next to it.")
    ] = (ROOT / "docs" / "reliability.md"),
) -> None:
    """Measure, and write the page."""
    console = Console(stderr=True)
    figures = out.with_suffix(".json")
    measured = json.loads(figures.read_text()) if only and figures.exists() else {}
    with tempfile.TemporaryDirectory() as scratch:
        place = scenarios.Place(ROOT / "bundles", "ms-san-sst2", Path(scratch))
        for name, run in _runs(place, minutes, overload).items():
            if only and name not in only:
                continue
            console.print(f"{name} ..", end=" ")
            started = time.monotonic()
            result, wanted, holds = asyncio.run(run())
            console.print(f"{'holds' if holds else 'FAILS'}, {time.monotonic() - started:.0f} s")
            measured[name] = {
                "wanted": wanted,
                "holds": holds,
                "measured": asdict(result),
                "when": time.strftime("%Y-%m-%d"),
                "commit": source_commit() or "unknown",
            }
            figures.write_text(json.dumps(measured, indent=1) + "\n")
            out.write_text(_page(measured))
    if not all(entry["holds"] for entry in measured.values()):
        sys.exit(1)


def _runs(
    place: scenarios.Place, minutes: float, overload: float
) -> dict[str, Callable[[], Coroutine[Any, Any, Result]]]:
    async def kills() -> Result:
        result = await scenarios.kill_servers(place, rounds=3)
        holds = result.ready_again_after_seconds < READY_SECONDS
        requirement = "no request breaks but those in the killed process's hands, none later; ready within 10 s"
        return result, requirement, holds

    async def vanishing() -> Result:
        result = await scenarios.vanish(place, clients=600)
        return result, "queues drain, no file descriptor leaks", True

    async def terminations() -> Result:
        result = await scenarios.terminate(place, rounds=5)
        return result, "no accepted request is lost, exit status 0", True

    async def strict() -> Result:
        result = await chaos.chaos(place, seconds=180)
        requirement = (
            "every answer is that of the library for the text of that request; no byte unasked; no connection "
            "breaks but those of a process that is killed or hangs"
        )
        return result, requirement, True

    async def reloads() -> Result:
        result = await scenarios.reload(place, rounds=20)
        requirement = "every request is answered by exactly one model; broken bundles are refused"
        return result, requirement, result.refused == 10

    async def flood() -> Result:
        result = await abuse.flood(place, connections=20_000)
        requirement = (
            f"/health answers within {HEALTH_SECONDS:g} s while they are held; the service stays up"
        )
        return result, requirement, result.slowest_health_seconds < HEALTH_SECONDS

    async def headers() -> Result:
        result = await abuse.long_headers(place, megabytes=150)
        requirement = f"they are refused; memory grows by less than {HEADERS_MB:g} MB"
        return result, requirement, result.megabytes_grown < HEADERS_MB

    async def pipelines() -> Result:
        result = await abuse.pipelines(place, connections=100)
        holds = (
            result.slowest_health_seconds < HEALTH_SECONDS and result.megabytes_kept < PIPELINES_MB
        )
        requirement = (
            f"/health answers within {HEALTH_SECONDS:g} s; memory back within {PIPELINES_MB:g} MB"
        )
        return result, requirement, holds

    async def stopped() -> Result:
        result = await abuse.stop(place, seconds=60, rate=20)
        holds = (
            result.slowest_sent_10_s_after_the_stop < 5
            and result.unready_after_seconds < 10
            and result.ready_again_after_seconds < 20
        )
        requirement = "sent 10 s after the stop: answered within 5 s; /ready 503 within 10 s; all back within 20 s"
        return result, requirement, holds

    async def batches() -> Result:
        result = await abuse.beside_batches(place, singles=1000)
        holds = result.singles.keys() == {"200"} and result.p99_beside_ms < 10 * result.p99_idle_ms
        return result, "no single input refused; p99 under 10 times the idle p99", holds

    async def ends() -> Result:
        result = await abuse.terminate_stopped(place, SHUTDOWN_SECONDS)
        holds = result.exit_after_seconds < SHUTDOWN_SECONDS + 5 and not result.processes_left
        return result, f"exit within {SHUTDOWN_SECONDS + 5:g} s, no process left", holds

    async def storm() -> Result:
        result = await endurance.overload(place, overload, calibration=5)
        holds = (
            result.slowest_answer_seconds < endurance.TIME_LIMIT
            and result.memory_grew_percent < GROWTH
            and result.median_5_s_after_ms < LATENCY * result.median_before_ms
        )
        requirement = (
            f"{endurance.TIMES} times the sustainable load: 200 or 429, 503, 504; accepted ones within "
            f"{endurance.TIME_LIMIT:.0f} s; memory within {GROWTH:g} %; latency back after 5 s"
        )
        return result, requirement, holds

    async def memory() -> Result:
        result = await endurance.mixed_traffic(place, endurance.for_minutes(minutes), SETTLED)
        requirement = (
            "keys of both classes, every answer 200; memory grows by less than "
            f"{MIXED_GROWTH:g} % after the first {SETTLED:.0%} of the time"
        )
        return result, requirement, result.grew_percent < MIXED_GROWTH

    async def leak() -> Result:
        result = await endurance.mixed_traffic(
            place,
            endurance.for_minutes(max(1, minutes / 10)),
            SETTLED,
            module="benchmarks.soak.leaking",
        )
        return (
            result,
            "an injected leak is caught by the same test",
            result.grew_percent > MIXED_GROWTH,
        )

    return {
        "kill": kills,
        "vanish": vanishing,
        "terminate": terminations,
        "chaos": strict,
        "reload": reloads,
        "flood": flood,
        "headers": headers,
        "pipelines": pipelines,
        "stop": stopped,
        "batches": batches,
        "terminate-stopped": ends,
        "overload": storm,
        "memory": memory,
        "leak": leak,
    }


REPORTS = Path(__file__).with_name("reports.md")

TITLES = {
    "kill": "`kill -9` of each worker under load",
    "vanish": "Clients that disconnect",
    "terminate": "SIGTERM under load",
    "chaos": "64 strict clients, kills and stops for three minutes",
    "reload": "Reloads under load",
    "flood": "Idle connections",
    "headers": "Headers without an end",
    "pipelines": "Pipelined requests whose answers nobody reads",
    "stop": "SIGSTOP of a serving process, 20 texts a second",
    "batches": "Single inputs beside clients that send batches of 512",
    "terminate-stopped": "SIGTERM under load, one serving process stopped",
    "overload": "Overload",
    "memory": "Memory under mixed traffic",
    "leak": "Negative control of the memory test",
}


def _page(measured: dict[str, Any]) -> str:
    lines = [
        "# Reliability",
        "",
        "Written by `make soak` (`benchmarks/soak/__main__.py`) from its measurements on the shipped bundles:",
        f"{usable_cores()} cores ({platform.machine()}), {_memory():.0f} GB, with the clients on the same machine.",
        "Seven of the scenarios run briefly in every test run (`tests/faults`). Times are those of this machine, which",
        "also ran the clients. `make chaos` runs the strict clients alone.",
        "",
        REPORTS.read_text().rstrip(),
    ]
    for name, title in TITLES.items():
        if name in measured:
            entry = measured[name]
            verdict = "Reached" if entry["holds"] else "**Missed**"
            lines += ["", f"## {title}", "", f"Required: {entry['wanted']}. {verdict}"]
            lines[-1] += f" ({entry['when']}, commit {entry['commit']})."
            lines += ["", "| | |", "|---|---|"]
            for field, value in entry["measured"].items():
                lines.append(f"| {field.replace('_', ' ')} | {_formatted(value)} |")
    return "\n".join(lines) + "\n"


def _formatted(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {number:,}" for name, number in value.items())
    return f"{value:,.4g}" if isinstance(value, float) and abs(value) < 1000 else f"{value:,.0f}"


def _memory() -> float:
    """The machine's memory in GB."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9


if __name__ == "__main__":
    typer.run(main)

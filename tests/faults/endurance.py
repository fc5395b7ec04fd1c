"""What only shows with time: too much load, and memory that grows."""

import asyncio
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from heedful.runtime.service import TRIM_INTERVAL
from tests.faults.scenarios import CLIENTS, Flags, Place, check
from tests.load import Ask, Load, load, mixed, texts, until

TIMES = 10
TEXTS = 32  # of one request of the overload
CONNECTIONS = 1000
QUEUE = 512  # inputs
TIME_LIMIT = 20.0
SAMPLES = 40
REST = TRIM_INTERVAL + 1
"""Seconds after which memory is looked at: by then what was freed has been given back."""


@dataclass(frozen=True)
class Overload:
    seconds: float
    sustainable_requests_per_second: float
    offered_requests_per_second: float
    requests: dict[str, int]
    slowest_answer_seconds: float
    median_before_ms: float
    median_5_s_after_ms: float
    memory_grew_percent: float
    """From rest after a calibration at full load to rest after the overload."""


async def overload(place: Place, seconds: float, calibration: float) -> Overload:
    """TIMES the requests that the service can answer."""

    def ask(number: int) -> tuple[str, dict[str, object]]:
        return "/embed", {
            "inputs": texts(number, TEXTS, 20),
            "model": place.model,
            "truncate": True,
        }

    flags = {"max-queue": QUEUE, "request-timeout": TIME_LIMIT, "cache-items": 0}
    async with place.service(flags) as (process, url):
        async with load(url, ask) as calm:
            ends = time.monotonic() + calibration
            await calm.closed(CLIENTS, lambda: time.monotonic() < ends)
        check(calm.answers, 200)
        rate = len(calm.answers) / calibration
        before = await median(url, ask)
        await asyncio.sleep(REST)
        held = process.memory()
        async with load(url, ask, connections=CONNECTIONS) as stormy:
            started = time.monotonic()
            await stormy.open(TIMES * rate, seconds)
            offered = len(stormy.answers) / (max(a.sent for a in stormy.answers) - started)
        check(stormy.answers, 200, 429, 503, 504)
        slowest = max(answer.seconds for answer in stormy.answers if answer.status == 200)
        await asyncio.sleep(5)
        after = await median(url, ask)
        await asyncio.sleep(REST)
        grew = process.memory() / held - 1
    return Overload(
        seconds, rate, offered, stormy.statuses(), slowest, 1e3 * before, 1e3 * after, 100 * grew
    )


async def median(url: str, ask: Ask) -> float:
    """Seconds of a request of a single client, of SAMPLES."""
    async with load(url, ask) as client:
        for _ in range(SAMPLES):
            await client.one()
    check(client.answers, 200)
    return statistics.median(answer.seconds for answer in client.answers)


@dataclass(frozen=True)
class Memory:
    minutes: float
    requests: dict[str, int]
    settled_mb: float
    last_mb: float
    largest_mb: float
    grew_percent: float  # from when it had settled to the end, each the mean of a tenth of the time


Progress = Callable[[Load], float]


def for_minutes(minutes: float) -> Progress:
    """The share of so many minutes that is over. They begin with the first question."""
    started: list[float] = []

    def share(_: Load) -> float:
        started.append(time.monotonic())
        return (started[-1] - started[0]) / 60 / minutes

    return share


def for_requests(number: int) -> Progress:
    """The share of so many requests that is answered."""
    return lambda clients: len(clients.answers) / number


async def mixed_traffic(
    place: Place,
    progress: Progress,
    settled: float,
    flags: Flags | None = None,
    *,
    module: str = "heedful",
) -> Memory:
    """Requests of every kind, with ever new words and lengths; the memory of the process tree.

    It has settled when `settled` of the progress is made.
    """
    started = time.monotonic()
    held: list[tuple[float, int]] = []  # progress, bytes
    async with (
        place.service(flags, module=module) as (process, url),
        load(url, mixed(5, place.kinds())) as clients,
        clients.beside(CLIENTS // 2),
    ):
        while (now := progress(clients)) < 1:
            held.append((now, await asyncio.to_thread(process.memory)))

            def further(than: float = now) -> bool:
                return progress(clients) >= than + 0.01

            await until(further, "progress")
    check(clients.answers, 200)
    tenth = (1 - settled) / 10
    before = statistics.mean(size for at, size in held if settled <= at < settled + tenth)
    after = statistics.mean(size for at, size in held if at >= 1 - tenth)
    return Memory(
        minutes=(time.monotonic() - started) / 60,
        requests=clients.statuses(),
        settled_mb=before / 1e6,
        last_mb=after / 1e6,
        largest_mb=max(size for _, size in held) / 1e6,
        grew_percent=100 * (after / before - 1),
    )

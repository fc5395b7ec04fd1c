"""Faults that show only with time: overload, and growing memory."""

import asyncio
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.soak.load import Ask, Load, embeds, load, mixed, until
from benchmarks.soak.scenarios import CLIENTS, Flags, Place, check
from heedful.runtime.service import TRIM_INTERVAL

TIMES = 10
TEXTS = 32  # per request of the overload
CONNECTIONS = 1000
QUEUE = 512  # inputs
TIME_LIMIT = 20.0
SAMPLES = 40
KEYS = """
[normal]
key = "one"

[import]
key = "two"
class = "bulk"
"""
REST = TRIM_INTERVAL + 1
"""Seconds before memory is measured: the service has returned freed memory by then."""


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
    """Send TIMES the requests that the service can answer."""

    ask = embeds(place.model, TEXTS)
    flags = {"max-queue": QUEUE, "request-timeout": TIME_LIMIT, "cache-items": 0}
    async with place.service(flags) as (process, url):
        async with load(url, ask) as calm:
            ends = time.monotonic() + calibration
            await calm.closed(CLIENTS, lambda: time.monotonic() < ends)
        check(calm.answers, 200)
        rate = len(calm.answers) / calibration
        before = await median(url, ask)
        await asyncio.sleep(REST)
        at_rest = process.memory()
        async with load(url, ask, connections=CONNECTIONS) as stormy:
            started = time.monotonic()
            await stormy.open(TIMES * rate, seconds)
            offered = len(stormy.answers) / (max(a.sent for a in stormy.answers) - started)
        check(stormy.answers, 200, 429, 503, 504)
        slowest = max(answer.seconds for answer in stormy.answers if answer.status == 200)
        await asyncio.sleep(5)
        after = await median(url, ask)
        await asyncio.sleep(REST)
        grew = process.memory() / at_rest - 1
    return Overload(
        seconds, rate, offered, stormy.statuses(), slowest, 1e3 * before, 1e3 * after, 100 * grew
    )


async def median(url: str, ask: Ask) -> float:
    """Median seconds of SAMPLES requests from a single client."""
    async with load(url, ask) as client:
        for _ in range(SAMPLES):
            await client.one()
    check(client.answers, 200)
    return statistics.median(answer.seconds for answer in client.answers)


@dataclass(frozen=True)
class Memory:
    minutes: float
    requests: dict[str, int]
    bulk_requests: dict[str, int]
    settled_mb: float
    last_mb: float
    largest_mb: float
    grew_percent: float  # from settling to the end, each the mean of a tenth of that time


Progress = Callable[[Load], float]


def for_minutes(minutes: float) -> Progress:
    """Share of `minutes` that has passed since the first call."""
    started: list[float] = []

    def share(_: Load) -> float:
        started.append(time.monotonic())
        return (started[-1] - started[0]) / 60 / minutes

    return share


def for_requests(number: int) -> Progress:
    """Share of `number` requests that has been answered."""
    return lambda clients: len(clients.answers) / number


async def mixed_traffic(
    place: Place,
    progress: Progress,
    settled: float,
    flags: Flags | None = None,
    *,
    module: str = "heedful",
) -> Memory:
    """Memory of the process tree under requests of every kind, with new words and lengths.

    Half of the clients send them with a key of the class bulk. Memory counts as settled from the share
    `settled` of the progress on.
    """
    keys = place.scratch / "keys.toml"
    keys.write_text(KEYS)
    flags = {"api-keys": keys, **(flags or {})}
    started = time.monotonic()
    samples: list[tuple[float, int]] = []  # progress, bytes
    async with (
        place.service(flags, module=module) as (process, url),
        load(url, mixed(5, place.kinds()), key="one") as clients,
        load(url, mixed(6, place.kinds()), key="two") as bulk,
        clients.beside(CLIENTS // 4),
        bulk.beside(CLIENTS // 4),
    ):
        while (now := progress(clients)) < 1:
            samples.append((now, await asyncio.to_thread(process.memory)))

            def further(than: float = now) -> bool:
                return progress(clients) >= than + 0.01

            await until(further, "progress")
    check(clients.answers, 200)
    check(bulk.answers, 200)
    tenth = (1 - settled) / 10
    before = statistics.mean(size for at, size in samples if settled <= at < settled + tenth)
    after = statistics.mean(size for at, size in samples if at >= 1 - tenth)
    return Memory(
        minutes=(time.monotonic() - started) / 60,
        requests=clients.statuses(),
        bulk_requests=bulk.statuses(),
        settled_mb=before / 1e6,
        last_mb=after / 1e6,
        largest_mb=max(size for _, size in samples) / 1e6,
        grew_percent=100 * (after / before - 1),
    )

"""Many clients, hanging processes and large requests against a service with its default settings."""

import asyncio
import multiprocessing
import os
import signal
import socket
import statistics
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event
from pathlib import Path

from benchmarks.soak.load import HUNG_SECONDS, Load, embeds, load, mixed, until
from benchmarks.soak.scenarios import CLIENTS, Place, check, told

HEADER = b"X-A: " + b"a" * 25 + b"\r\n"
LATE = 10.0
"""Seconds after a process was stopped from which on every request must be answered soon."""
HOLD = """
import socket, sys
held = []
try:
    for _ in range(int(sys.argv[2])):
        held.append(socket.create_connection(("127.0.0.1", int(sys.argv[1]))))
except OSError as error:
    print(error, end=" ")
print(len(held), flush=True)
sys.stdin.read()
"""
"""A process that opens connections, says how many, and holds them until its input ends."""


@dataclass(frozen=True)
class Flood:
    connections: int
    slowest_health_seconds: float
    descriptors: int
    requests_afterwards: dict[str, int]


async def flood(place: Place, connections: int, per_process: int = 5_000) -> Flood:
    """Connections that send nothing, from several processes, while /health is asked."""
    slowest = 0.0
    async with place.service() as (process, url):
        holders = []
        try:
            for start in range(0, connections, per_process):
                count = min(per_process, connections - start)
                holder = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-c", HOLD, url.rpartition(":")[2], str(count)),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                )
                holders.append(holder)
                assert holder.stdout
                line = asyncio.create_task(holder.stdout.readline())
                while not line.done():
                    slowest = max(slowest, await health(url))
                opened = (await line).decode().split()
                assert opened == [str(count)], opened
            for _ in range(20):
                slowest = max(slowest, await health(url))
            descriptors = process.descriptors()
        finally:
            for holder in holders:
                assert holder.stdin
                holder.stdin.close()
                await holder.wait()
        async with load(url, mixed(5, place.kinds())) as clients:
            for _ in range(20):
                await clients.one()
        assert not process.ended()
    check(clients.answers, 200)
    return Flood(connections, slowest, descriptors, clients.statuses())


async def health(url: str) -> float:
    """Seconds until a new connection has the answer of /health."""
    started = time.monotonic()
    async with asyncio.timeout(HUNG_SECONDS):
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        writer.write(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
    assert answer.startswith(b"HTTP/1.1 200 "), answer
    return time.monotonic() - started


@dataclass(frozen=True)
class LongHeaders:
    megabytes_sent: float
    megabytes_grown: float


async def long_headers(place: Place, megabytes: int) -> LongHeaders:
    """Header lines without an end, again and again on new connections until so many bytes were sent."""
    block = HEADER * 24_000
    async with place.service() as (process, url):
        await health(url)
        before = process.memory()
        sent, most = 0, before
        while sent < 1e6 * megabytes:
            connection = socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])))
            with connection, suppress(OSError):  # it is refused and closed
                connection.sendall(b"GET /health HTTP/1.1\r\n")
                while sent < 1e6 * megabytes:
                    sent += len(block)
                    connection.sendall(block)
            most = max(most, process.memory())
        await health(url)
    return LongHeaders(sent / 1e6, (most - before) / 1e6)


@dataclass(frozen=True)
class Pipelines:
    connections: int
    megabytes_sent: float
    slowest_health_seconds: float
    megabytes_grown: float
    megabytes_kept: float


async def pipelines(place: Place, connections: int, kilobytes: int = 250) -> Pipelines:
    """Connections that send so many bytes of requests at once and read no answer, while /health is asked."""
    requests = b"GET /nope HTTP/1.1\r\nHost:x\r\n\r\n"
    requests *= 1000 * kilobytes // len(requests)
    slowest, sent = 0.0, 0
    async with place.service() as (process, url):
        await health(url)
        before = most = process.memory()
        connected = [
            socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])))
            for _ in range(connections)
        ]
        for connection in connected:
            connection.setblocking(False)
            with suppress(BlockingIOError):
                sent += connection.send(requests)
        for _ in range(50):
            slowest = max(slowest, await health(url))
            most = max(most, process.memory())
        for connection in connected:
            connection.close()
        await asyncio.sleep(5)
        await health(url)
        kept = process.memory() - before
        assert "Traceback" not in process.log
        assert "hangs" not in process.log
    return Pipelines(connections, sent / 1e6, slowest, (most - before) / 1e6, kept / 1e6)


@dataclass(frozen=True)
class Stopped:
    seconds: float
    requests: dict[str, int]
    slowest_sent_10_s_after_the_stop: float
    unready_after_seconds: float
    ready_again_after_seconds: float


async def stop(place: Place, seconds: float, rate: float) -> Stopped:
    """SIGSTOP to a serving process while `rate` texts a second come on new and old connections."""
    async with place.service() as (process, url), load(url, embeds(place.model, 1)) as clients:
        traffic = asyncio.create_task(clients.open(rate, seconds))
        await asyncio.sleep(2)
        stopped = time.monotonic()
        os.kill(process.servers()[0], signal.SIGSTOP)
        unready = await until(lambda: told(url, 503), "/ready to tell it")
        again = unready + await until(lambda: told(url, 200), "a service that is ready")
        await traffic
    check([answer for answer in clients.answers if answer.status], 200)
    broken = [answer for answer in clients.answers if not answer.status]
    assert all(answer.sent < stopped + LATE for answer in broken), broken
    late = [answer.seconds for answer in clients.answers if answer.sent > stopped + LATE]
    return Stopped(seconds, clients.statuses(), max(late), unready, again)


@dataclass(frozen=True)
class BesideBatches:
    batch_clients: int
    batches: dict[str, int]
    singles: dict[str, int]
    p99_idle_ms: float
    p99_beside_ms: float


async def beside_batches(
    place: Place, singles: int, batch_clients: int = 12, size: int = 512
) -> BesideBatches:
    """Single inputs one after the other, first alone, then beside clients that send batches."""

    async def measured(url: str) -> Load:
        async with load(url, embeds(place.model, 1)) as clients:
            for _ in range(singles):
                await clients.one()
        return clients

    async with place.service({"cache-items": 0}) as (_, url):
        await measured(url)  # warm
        idle = await measured(url)
        # In another process: reading their answers would delay the singles' clients.
        spawn = multiprocessing.get_context("spawn")
        started, stop, ends = spawn.Event(), spawn.Event(), spawn.Queue()
        arguments = (url, place.model, batch_clients, size, started, stop, ends)
        process = spawn.Process(target=_send_batches, args=arguments)
        process.start()
        await until(started.is_set, "the first batches")
        under_load = await measured(url)
        stop.set()
        statuses = await asyncio.to_thread(ends.get)
        process.join()
    check(idle.answers, 200)
    assert set(statuses) <= {"200", "429"}, statuses
    return BesideBatches(
        batch_clients, statuses, under_load.statuses(), p99_ms(idle), p99_ms(under_load)
    )


def _send_batches(
    url: str,
    model: str,
    clients: int,
    size: int,
    started: Event,
    stop: Event,
    ends: "Queue[dict[str, int]]",
) -> None:
    """Clients that send batches until `stop`; `started` is set at the first answers."""

    async def send() -> Load:
        async with load(url, embeds(model, size)) as large, large.beside(clients):
            await until(lambda: len(large.answers) >= clients, "the first batches")
            started.set()
            await asyncio.to_thread(stop.wait)
        return large

    ends.put(asyncio.run(send()).statuses())


def p99_ms(clients: Load) -> float:
    return 1e3 * statistics.quantiles((answer.seconds for answer in clients.answers), n=100)[98]


@dataclass(frozen=True)
class StoppedEnd:
    requests: dict[str, int]
    exit_after_seconds: float
    processes_left: int


async def terminate_stopped(place: Place, shutdown_timeout: float) -> StoppedEnd:
    """SIGTERM under load while one serving process is stopped."""
    async with (
        place.service({"shutdown-timeout": shutdown_timeout}) as (process, url),
        load(url, mixed(7, place.kinds())) as clients,
    ):
        children = process.children()
        async with clients.beside(CLIENTS):
            await until(lambda: len(clients.answers) >= CLIENTS, "answers")
            os.kill(process.servers()[0], signal.SIGSTOP)
            process.popen.send_signal(signal.SIGTERM)
            waited = await until(process.ended, "the end")
        left = sum(Path(f"/proc/{pid}/exe").exists() for pid in children)
    return StoppedEnd(clients.statuses(), waited, left)

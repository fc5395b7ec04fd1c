"""Open loop: requests leave at a fixed rate, whatever becomes of those before them.

The latency of a request counts from the moment it was due, so that a server that stalls is charged for
all that came due meanwhile (what Tene calls coordinated omission). wrk2 does this, and Debian does not
package it; httpx and aiohttp cost as much a request as the server that is measured on the same cores, so
that the client is a few lines over asyncio's transports.
"""

import asyncio
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any, cast
from urllib.parse import urlsplit

import orjson
import uvloop

from benchmarks.closed_loop import LoadFailed


@dataclass(frozen=True, slots=True)
class Arrivals:
    """What came of an open loop; latencies in ms from the moment a request was due."""

    rate: float
    requests: int
    p50: float
    p90: float
    p99: float


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest of the values that at least `share` of them (0 < share <= 1) do not exceed: nearest rank."""
    return sorted(values)[math.ceil(share * len(values)) - 1]


def at_rate(url: str, path: str, bodies: Sequence[Any], rate: float, seconds: float) -> Arrivals:
    """Send `rate` requests a second for so long. Raises LoadFailed where one is not answered 200."""
    requests = [_request(url, path, orjson.dumps(body)) for body in bodies]
    number = max(1, int(rate * seconds))
    latencies = [1000 * each for each in uvloop.run(_send(url, requests, rate, number))]
    shares = (percentile(latencies, share) for share in (0.5, 0.9, 0.99))
    return Arrivals(rate, number, *shares)


def _request(url: str, path: str, body: bytes) -> bytes:
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {urlsplit(url).netloc}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class _Connection(asyncio.Protocol):
    """One request at a time: `answer` is its status line once the whole answer is there."""

    def __init__(self) -> None:
        self._received = bytearray()
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.transport: asyncio.WriteTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.WriteTransport, transport)  # uvloop's do not inherit

    def send(self, request: bytes) -> "asyncio.Future[bytes]":
        self.answer = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return self.answer

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, body = self._received.partition(b"\r\n\r\n")
        if not end:
            return
        fields = head.lower().split(b"\r\ncontent-length:")
        if len(fields) != 2:
            self.answer.set_exception(LoadFailed("an answer has no Content-Length"))
        elif len(body) >= int(fields[1].split(b"\r\n")[0]):
            self._received.clear()
            self.answer.set_result(bytes(head[: head.find(b"\r\n")]))

    def connection_lost(self, error: Exception | None) -> None:
        if not self.answer.done():
            self.answer.set_exception(LoadFailed(f"the server closed a connection: {error}"))


async def _send(url: str, requests: Sequence[bytes], rate: float, number: int) -> list[float]:
    """Seconds that each request took from when it was due."""
    place = urlsplit(url)
    host, port = place.hostname or "127.0.0.1", place.port or 80
    loop = asyncio.get_running_loop()
    every: list[_Connection] = []
    free: list[_Connection] = []
    latencies: list[float] = []

    async def one(request: bytes, due: float) -> None:
        if free:
            connection = free.pop()
        else:
            _, connection = await loop.create_connection(_Connection, host, port)
            every.append(connection)
        status = await connection.send(request)
        latencies.append(time.perf_counter() - due)
        if status.split()[1] != b"200":
            raise LoadFailed(f"{url} answered {status.decode()!r}")
        free.append(connection)

    try:
        async with asyncio.TaskGroup() as group:
            started = time.perf_counter()
            for i, request in zip(range(number), cycle(requests), strict=False):
                due = started + i / rate
                await asyncio.sleep(due - time.perf_counter())
                group.create_task(one(request, due))
    except* LoadFailed as failed:
        raise failed.exceptions[0] from None
    finally:
        for connection in every:
            connection.transport.abort()
    return latencies

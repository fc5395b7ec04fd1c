"""Open loop: requests leave at a fixed rate, whether or not earlier ones were answered.

The latency of a request counts from the moment it was due, so that a stall of the server counts for all requests
that came due meanwhile (otherwise there is what Tene calls coordinated omission). Connections are open before the
first request is due, as in wrk2, which Debian does not package; a request for which none is free opens another. httpx
and aiohttp cost as much a request as the server that is measured on the same cores (asyncio's transports 106 µs, this
78), so that the client is a few lines over sockets.
"""

import math
import selectors
import socket
import time
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit

import orjson

from benchmarks.closed_loop import PATIENCE, LoadFailed

CONNECTIONS = 64
"""Open before the first request is due: opening them costs the server 15 ms, in which requests would wait."""
ACCEPTED_SECONDS = 0.1
"""Seconds for the server to accept them."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """The result of an open loop; latencies in ms from the moment a request was due."""

    rate: float
    requests: int
    p50: float
    p90: float
    p99: float


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of them (0 < share <= 1) do not exceed: nearest rank."""
    return sorted(values)[math.ceil(share * len(values)) - 1]


def at_rate(url: str, path: str, bodies: Sequence[Any], rate: float, seconds: float) -> Arrivals:
    """Send `rate` requests a second. Raises LoadFailed when one is not answered 200."""
    requests = [_request(url, path, orjson.dumps(body)) for body in bodies]
    number = max(1, int(rate * seconds))
    latencies = [1000 * each for each in _send(url, requests, rate, number)]
    shares = (percentile(latencies, share) for share in (0.5, 0.9, 0.99))
    return Arrivals(rate, number, *shares)


def _request(url: str, path: str, body: bytes) -> bytes:
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {urlsplit(url).netloc}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class _Connection:
    """One request at a time."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.create_connection(address)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = bytearray()
        self._due = 0.0

    def fileno(self) -> int:
        return self._socket.fileno()

    def ask(self, request: bytes, due: float) -> None:
        self._due = due
        self._socket.sendall(request)

    def latency(self) -> float | None:
        """Read what has arrived; once the answer is complete, the seconds since the request was due."""
        chunk = self._socket.recv(1 << 16)
        if not chunk:
            raise LoadFailed("the server closed a connection")
        self._received += chunk
        head, end, body = self._received.partition(b"\r\n\r\n")
        if not end:
            return None
        fields = head.lower().split(b"\r\ncontent-length:")
        if len(fields) != 2:
            raise LoadFailed("an answer has no Content-Length")
        if len(body) < int(fields[1].split(b"\r\n")[0]):
            return None
        if head.split()[1] != b"200":
            raise LoadFailed(f"the server answered {head.splitlines()[0].decode()!r}")
        self._received.clear()
        return time.perf_counter() - self._due

    def close(self) -> None:
        self._socket.close()


def _send(url: str, requests: Sequence[bytes], rate: float, number: int) -> list[float]:
    """Seconds of each request since it was due."""
    place = urlsplit(url)
    address = place.hostname or "127.0.0.1", place.port or 80
    free: deque[_Connection] = deque()  # used in turn, like wrk2's
    latencies: list[float] = []
    sent = 0
    with ExitStack() as stack:
        arrived = stack.enter_context(selectors.DefaultSelector())

        def connect() -> _Connection:
            connection = stack.enter_context(closing(_Connection(address)))
            arrived.register(connection, selectors.EVENT_READ)
            return connection

        free.extend(connect() for _ in range(CONNECTIONS))
        time.sleep(ACCEPTED_SECONDS)
        started = time.perf_counter()
        while len(latencies) < number:
            passed = time.perf_counter() - started
            while sent < number and sent / rate <= passed:
                connection = free.popleft() if free else connect()
                connection.ask(requests[sent % len(requests)], started + sent / rate)
                sent += 1
            left = sent / rate - passed if sent < number else PATIENCE
            events = arrived.select(left)
            if not events and sent == number:
                raise LoadFailed(f"{url} does not answer")
            for key, _ in events:
                connection = cast(_Connection, key.fileobj)
                if (latency := connection.latency()) is not None:
                    latencies.append(latency)
                    free.append(connection)
    return latencies

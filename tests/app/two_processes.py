"""Helpers for tests of a service of two processes: raw connections, and figures of its metrics."""

import contextlib
import re
import socket
from collections.abc import Iterator

import httpx

from tests.app.conftest import KEY
from tests.app.posting import bearer
from tests.process import PATIENCE, Process, ready_at, wait_for

ALLOWED = bearer(KEY)
HEALTH = b"GET /health HTTP/1.1\r\nHost: x\r\n"
EMBED = f"POST /embed HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\n".encode()
AS_JSON = b"Content-Type: application/json\r\n"


def connect(service: Process, *, buffer: int | None = None) -> socket.socket:
    """A connection, with a buffer of so many bytes for what it receives."""
    host, _, port = service.url().removeprefix("http://").rpartition(":")
    connection = socket.socket()
    if buffer:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    connection.settimeout(PATIENCE)
    connection.connect((host, int(port)))
    return connection


@contextlib.contextmanager
def connections(service: Process, count: int) -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(connect(service)) for _ in range(count)]


def until_closed(connection: socket.socket) -> bytes:
    """The bytes until the service closes the connection."""
    read = b""
    with contextlib.suppress(ConnectionResetError):  # it was still being sent to
        while chunk := connection.recv(65536):
            read += chunk
    return read


def healthy(service: Process) -> bool:
    return httpx.get(service.url() + "/health", timeout=PATIENCE).is_success


def ready(service: Process) -> None:
    """Wait until both processes answer."""
    wait_for(lambda: ready_at(service.url()), "/ready")
    wait_for(lambda: len(service.servers()) == 2 or None, "two serving processes")


def page(service: Process) -> str:
    """The metrics."""
    return httpx.get(service.url() + "/metrics", timeout=PATIENCE).text


def counted(page: str, name: str) -> float:
    """The sum of a metric's series; `name` may hold labels, as a pattern."""
    values = re.findall(rf"^heedful_{name}(?:\{{[^}}]*\}})? (\S+)$", page, re.M)
    return sum(map(float, values))

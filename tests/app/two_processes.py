"""What tests of a service of two processes share: raw connections, and what its page of metrics says."""

import re
import socket

import httpx

from tests.app.conftest import KEY
from tests.process import PATIENCE, Process, wait_for

ALLOWED = {"Authorization": f"Bearer {KEY}"}
HEALTH = b"GET /health HTTP/1.1\r\nHost: x\r\n"


def connect(service: Process) -> socket.socket:
    host, _, port = service.url().removeprefix("http://").rpartition(":")
    return socket.create_connection((host, int(port)), timeout=PATIENCE)


def until_closed(connection: socket.socket) -> bytes:
    """What comes until the service closes the connection."""
    read = b""
    try:
        while chunk := connection.recv(65536):
            read += chunk
    except ConnectionResetError:
        pass  # it was still being sent to
    return read


def healthy(service: Process) -> bool:
    return httpx.get(service.url() + "/health", timeout=PATIENCE).is_success


def ready(service: Process) -> None:
    """Wait until both processes answer."""

    def told() -> bool | None:
        try:
            return httpx.get(service.url() + "/ready", timeout=PATIENCE).is_success or None
        except httpx.TransportError:  # none of them listens yet
            return None

    wait_for(told, "/ready")
    wait_for(lambda: len(service.servers()) == 2 or None, "two serving processes")


def page(service: Process) -> str:
    """The metrics."""
    return httpx.get(service.url() + "/metrics", timeout=PATIENCE).text


def counted(page: str, name: str) -> float:
    """The sum of a metric's series; `name` may hold labels, as a pattern."""
    found = re.findall(rf"^heedful_{name}(?:\{{[^}}]*\}})? (\S+)$", page, re.M)
    return sum(map(float, found))

"""A small HTTP server in a thread, which keeps what it was sent."""

import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.http_server import serving


class Small(ThreadingHTTPServer):
    """Answers POST with `status`; the first request holds every answer back for `stall` seconds."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.status, self.stall = 200, 0.0
        self.bodies: list[bytes] = []
        self.until = 0.0
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that has failed goes away; the test asserts that."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Small

    def do_POST(self) -> None:
        server = self.server
        server.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        if len(server.bodies) == 1:
            server.until = time.monotonic() + server.stall
        time.sleep(max(0.0, server.until - time.monotonic()))
        self.send_response(server.status)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def small() -> Iterator[Small]:
    server = Small()
    with serving(server):
        yield server

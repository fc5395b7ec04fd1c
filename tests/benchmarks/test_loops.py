"""The two load generators, against a server that keeps the bodies it receives."""

import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from benchmarks.closed_loop import Closed, LoadFailed
from benchmarks.open_loop import at_rate
from tests.http_server import serving
from tests.process import tool

BODIES = [{"inputs": f"text {number}"} for number in range(100)]
SENT = [f'{{"inputs":"text {number}"}}'.encode() for number in range(100)]


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


def test_an_open_loop_sends_each_body_once_and_charges_a_stall_to_all_that_came_due(
    small: Small,
) -> None:
    """100 requests in 0.5 s, the first 0.4 s of them held back: the tenth was due at 0.045 s."""
    small.stall = 0.4
    load = at_rate(small.url, "/embed", BODIES, rate=200, seconds=0.5)
    assert load.requests == 100
    assert sorted(small.bodies) == sorted(SENT)
    assert 1000 * (0.4 - 0.055) <= load.p90 <= load.p99


def test_a_loop_fails_where_a_request_does(small: Small) -> None:
    tool("wrk")
    small.status = 429
    with pytest.raises(LoadFailed, match="429"):
        at_rate(small.url, "/embed", BODIES, rate=100, seconds=0.05)
    small.status = 503
    with pytest.raises(LoadFailed, match="failed"):
        Closed(small.url, "/embed", BODIES).run(1, 1)

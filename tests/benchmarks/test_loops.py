"""The two load generators, against a server that keeps the bodies it receives."""

import time
from collections.abc import Iterator

import pytest

from benchmarks.closed_loop import Closed, LoadFailed
from benchmarks.open_loop import at_rate
from tests.http_server import Keeping, serving
from tests.process import tool

BODIES = [{"inputs": f"text {number}"} for number in range(100)]
SENT = [f'{{"inputs":"text {number}"}}'.encode() for number in range(100)]


class Small(Keeping):
    """The first request holds every answer back for `stall` seconds."""

    url, stall, until = "", 0.0, 0.0

    def hold(self) -> None:
        if len(self.posted) == 1:
            self.until = time.monotonic() + self.stall
        time.sleep(max(0.0, self.until - time.monotonic()))


@pytest.fixture
def small() -> Iterator[Small]:
    server = Small()
    with serving(server) as server.url:
        yield server


def test_an_open_loop_sends_each_body_once_and_charges_a_stall_to_all_that_came_due(
    small: Small,
) -> None:
    """100 requests in 0.5 s, the first 0.4 s of them held back: the tenth was due at 0.045 s."""
    small.stall = 0.4
    load = at_rate(small.url, "/embed", BODIES, rate=200, seconds=0.5)
    assert load.requests == 100
    assert sorted(body for _, body in small.posted) == sorted(SENT)
    assert 1000 * (0.4 - 0.055) <= load.p90 <= load.p99


def test_a_loop_fails_where_a_request_does(small: Small) -> None:
    tool("wrk")
    small.status = 429
    with pytest.raises(LoadFailed, match="429"):
        at_rate(small.url, "/embed", BODIES, rate=100, seconds=0.05)
    small.status = 503
    with pytest.raises(LoadFailed, match="failed"):
        Closed(small.url, "/embed", BODIES).run(1, 1)

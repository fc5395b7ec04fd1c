"""The two load generators, against a server that keeps the bodies it receives."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.closed_loop import Closed, LoadFailed
from benchmarks.open_loop import at_rate, percentile
from tests.benchmarks.conftest import Small
from tests.process import tool

BODIES = [{"inputs": f"text {number}"} for number in range(100)]


@given(
    st.lists(st.floats(0, 1e6), min_size=1, max_size=300),
    st.sampled_from((0.01, 0.25, 0.5, 0.9, 0.99, 1.0)),
)
def test_a_percentile_is_numpys_by_nearest_rank(values: list[float], share: float) -> None:
    assert percentile(values, share) == np.percentile(values, 100 * share, method="inverted_cdf")


def test_an_open_loop_sends_each_body_once(small: Small) -> None:
    found = at_rate(small.url, "/embed", BODIES, rate=500, seconds=0.2)
    assert found.requests == 100
    assert sorted(small.bodies) == sorted(f'{{"inputs":"text {n}"}}'.encode() for n in range(100))
    assert 0 < found.p50 <= found.p90 <= found.p99


def test_a_server_that_stalls_is_charged_for_all_that_came_due(small: Small) -> None:
    """100 requests in 0.5 s, the first 0.4 s of them held back: the tenth was due at 0.045 s."""
    small.stall = 0.4
    assert at_rate(small.url, "/embed", BODIES, rate=200, seconds=0.5).p90 >= 1000 * (0.4 - 0.055)


def test_an_open_loop_fails_where_a_request_does(small: Small) -> None:
    small.status = 429
    with pytest.raises(LoadFailed, match="429"):
        at_rate(small.url, "/embed", BODIES, rate=100, seconds=0.05)


def test_a_closed_loop_sends_one_body_after_the_other(small: Small) -> None:
    tool("wrk")
    found = Closed(small.url, "/embed", BODIES).run(1, 1)
    # From the second on: wrk asks its script for one request before it begins.
    numbers = range(1, 1 + len(small.bodies))
    sent = [f'{{"inputs":"text {number % 100}"}}'.encode() for number in numbers]
    assert small.bodies == sent
    assert found.requests_per_second > 0
    assert 0 < found.p50 <= found.p90 <= found.p99


def test_a_closed_loop_fails_where_a_request_does(small: Small) -> None:
    tool("wrk")
    small.status = 503
    with pytest.raises(LoadFailed, match="failed"):
        Closed(small.url, "/embed", BODIES).run(1, 1)

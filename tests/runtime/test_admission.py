"""Who may join the queue, and when a refused client should return."""

import contextlib

import pytest

from heedful.runtime.engine.admission import MAX_RETRY, RESERVE_SHARE, Admission
from heedful.runtime.engine.lines import SMALL_ROWS
from heedful.runtime.errors import Overloaded


def test_large_requests_leave_a_reserve_to_small_ones() -> None:
    admission = Admission(512)
    with contextlib.ExitStack() as stack:
        stack.enter_context(admission.admit(512))
        with pytest.raises(Overloaded):
            stack.enter_context(admission.admit(SMALL_ROWS + 1))
        with pytest.raises(Overloaded):
            stack.enter_context(admission.admit(1, bulk=True))
        for _ in range(int(512 * RESERVE_SHARE)):
            stack.enter_context(admission.admit(1))
        with pytest.raises(Overloaded):
            stack.enter_context(admission.admit(1))
    assert admission.in_flight == 0


def test_a_refused_client_is_told_when_its_inputs_will_fit() -> None:
    now = 0.0
    admission = Admission(1000, lambda: now)

    def refused(inputs: int) -> int:
        with pytest.raises(Overloaded) as caught, admission.admit(inputs):
            pass
        return caught.value.retry_after

    with admission.admit(1000):
        assert refused(1000) == MAX_RETRY  # nothing has drained yet
    for _ in range(1000):  # 100 inputs a second
        with admission.admit(10):
            now += 0.1
    with admission.admit(1000):
        assert refused(1000) in (10, 11)
        assert refused(100) == 1
        now += 7  # 25 inputs a second: 1,000 would leave in 41 s
        assert refused(1000) == MAX_RETRY
        now += 60  # nothing drains any more
        assert refused(1000) == MAX_RETRY

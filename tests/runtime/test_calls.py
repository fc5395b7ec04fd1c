import asyncio
from collections.abc import Callable
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.runtime.engine.calls import SMALL_ROWS, Call, FairQueue
from heedful.runtime.errors import Unavailable

T = TypeVar("T")


def on_a_loop(scenario: Callable[[asyncio.AbstractEventLoop], T]) -> T:
    """Run plain code where futures can be made."""

    async def run() -> T:
        return scenario(asyncio.get_running_loop())

    return asyncio.run(run())


@given(st.lists(st.lists(st.integers(0, 9), max_size=6), max_size=6), st.integers(1, 20))
def test_every_row_is_taken_once_in_order_and_within_the_budget(
    costs: list[list[int]], budget: int
) -> None:
    def scenario(loop: asyncio.AbstractEventLoop) -> None:
        queue: FairQueue[int, str] = FairQueue()
        calls = [Call[int, str](work, loop) for work in costs]
        for call in calls:
            queue.put(call)
        rows: dict[int, list[int]] = {id(call): [] for call in calls}
        waiting = sum(map(len, costs))
        while tickets := queue.take(budget, lambda cost: cost):
            assert len(tickets) == 1 or sum(ticket.item for ticket in tickets) <= budget
            waiting -= len(tickets)
            assert len(queue) == waiting
            for ticket in tickets:
                rows[id(ticket.call)].append(ticket.row)
        assert waiting == 0
        assert [rows[id(call)] for call in calls] == [list(range(len(work))) for work in costs]

    on_a_loop(scenario)


def test_no_more_rows_are_taken_than_asked_for() -> None:
    def scenario(loop: asyncio.AbstractEventLoop) -> None:
        queue: FairQueue[int, str] = FairQueue()
        queue.put(Call([1] * 7, loop))
        assert [len(queue.take(100, lambda cost: cost, most)) for most in (0, 3, 3, 3)] == [
            0,
            3,
            3,
            1,
        ]

    on_a_loop(scenario)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=8), st.integers(1, 50))
def test_a_call_waits_for_one_row_of_each_other_call_not_for_all_of_them(
    sizes: list[int], budget: int
) -> None:
    def scenario(loop: asyncio.AbstractEventLoop) -> None:
        queue: FairQueue[int, str] = FairQueue()
        for size in sizes:
            queue.put(Call([1] * size, loop))
        single: Call[int, str] = Call([1], loop)
        queue.put(single)
        before = 0
        while tickets := queue.take(budget, lambda cost: cost):
            calls = [ticket.call for ticket in tickets]
            if single in calls:
                assert before + calls.index(single) <= len(sizes)
                return
            before += len(tickets)
        raise AssertionError("the single row was never taken")

    on_a_loop(scenario)


def test_a_call_is_answered_in_the_order_of_its_rows_when_the_last_is_there() -> None:
    def scenario(loop: asyncio.AbstractEventLoop) -> None:
        call: Call[int, str] = Call([7, 8, 9], loop)
        for row in (2, 0):
            call.put(row, str(row))
            assert not call.finished
        call.put(1, "1")
        assert call.done.result() == ["0", "1", "2"]

    on_a_loop(scenario)


def test_a_call_without_rows_is_answered_at_once() -> None:
    assert on_a_loop(lambda loop: Call[int, str]([], loop).done.result()) == []


def test_rows_of_a_call_that_is_over_are_not_taken() -> None:
    def scenario(loop: asyncio.AbstractEventLoop) -> None:
        queue: FairQueue[int, str] = FairQueue()
        cancelled, failed, waiting = (Call[int, str]([1] * 10, loop) for _ in range(3))
        for call in (cancelled, failed, waiting):
            queue.put(call)
        queue.take(3, lambda cost: cost)
        cancelled.done.cancel()
        failed.fail(Unavailable("gone"))
        queue.discard(cancelled)
        queue.discard(cancelled)  # once more has no effect
        assert len(queue) == 18
        assert {ticket.call for ticket in queue.take(99, lambda cost: cost)} == {waiting}
        assert len(queue) == 0
        cancelled.put(0, "late")  # neither of these has an effect, or raises
        cancelled.fail(Unavailable("late"))
        failed.put(0, "late")
        with pytest.raises(Unavailable, match="gone"):
            failed.done.result()

    on_a_loop(scenario)


def test_bulk_rows_are_taken_when_no_other_wait() -> None:
    def scenario(loop: asyncio.AbstractEventLoop) -> None:
        queue: FairQueue[int, str] = FairQueue()
        bulk: Call[int, str] = Call([1] * 5, loop, bulk=True)
        single: Call[int, str] = Call([1], loop)
        queue.put(bulk)
        assert queue.only_bulk
        assert len(queue.take(2, lambda cost: cost)) == 2
        queue.put(single)
        assert not queue.only_bulk
        assert [ticket.call for ticket in queue.take(100, lambda cost: cost)] == [single]
        assert [ticket.call for ticket in queue.take(100, lambda cost: cost)] == [bulk] * 3
        other: Call[int, str] = Call([1], loop, bulk=True)
        queue.put(other)
        queue.discard(other)
        assert len(queue) == 0

    on_a_loop(scenario)


def test_small_calls_have_every_other_turn_while_larger_ones_wait() -> None:
    def scenario(loop: asyncio.AbstractEventLoop) -> None:
        queue: FairQueue[int, str] = FairQueue()
        assert not queue.small_turn()
        small = [Call[int, str]([1] * SMALL_ROWS, loop) for _ in range(2)]
        large: Call[int, str] = Call([1] * (SMALL_ROWS + 1), loop)
        bulk: Call[int, str] = Call([1], loop, bulk=True)
        for call in (large, bulk, *small):
            queue.put(call)
        assert [queue.small_turn() for _ in range(4)] == [True, False, True, False]
        taken = queue.take(SMALL_ROWS + 2, lambda cost: cost, small=True)
        assert [ticket.call for ticket in taken[:3]] == [small[0], small[1], small[0]]
        assert large not in {ticket.call for ticket in taken}
        queue.discard(large)
        assert [queue.small_turn() for _ in range(3)] == [True, True, True]
        assert len(queue.take(99, lambda cost: cost, small=True)) == SMALL_ROWS - 2
        assert not queue.small_turn()
        assert not queue.take(99, lambda cost: cost, small=True)
        assert [ticket.call for ticket in queue.take(99, lambda cost: cost)] == [bulk]

    on_a_loop(scenario)


def test_a_small_call_that_is_over_has_no_turn() -> None:
    def scenario(loop: asyncio.AbstractEventLoop) -> None:
        queue: FairQueue[int, str] = FairQueue()
        cancelled: Call[int, str] = Call([1], loop)
        large: Call[int, str] = Call([1] * (SMALL_ROWS + 1), loop)
        queue.put(cancelled)
        queue.put(large)
        cancelled.done.cancel()
        assert not queue.small_turn()
        assert queue.take(1, lambda cost: cost, small=False)[0].call is large

    on_a_loop(scenario)

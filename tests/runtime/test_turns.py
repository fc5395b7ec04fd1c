"""One long step in each round of the event loop."""

import asyncio
from collections import deque

import pytest

from heedful.runtime.engine.turns import Once, gathering, turns

pytestmark = pytest.mark.anyio


async def test_steps_run_one_a_round_in_order() -> None:
    seen: list[str] = []

    async def step(name: str) -> None:
        await turns().wait()
        seen.append(name)

    async with asyncio.TaskGroup() as tasks:
        for name in "abc":
            tasks.create_task(step(name))
        turns().call(lambda: seen.append("called"))
        for _ in range(8):
            await asyncio.sleep(0)
            seen.append("|")
    rounds = [part for part in "".join(f" {one}" for one in seen).split("|") if part.strip()]
    assert [part.split() for part in rounds] == [["called"], ["a"], ["b"], ["c"]]


@pytest.mark.parametrize(
    ("coming", "taken"),
    [
        ([1, 0, 1], [1, 1]),
        ([1, 1, 2, 0], [4]),
        ([5, 3, 3], [8, 3]),  # eight are enough
        ([9, 0, 1], [9, 1]),
    ],
)
async def test_a_step_waits_while_rounds_bring_more(coming: list[int], taken: list[int]) -> None:
    """`coming` is how many come in each round, `taken` how many each step takes."""
    waiting, found = 0, []
    left = deque(coming)

    def step() -> None:
        nonlocal waiting
        found.append(waiting)
        waiting = 0

    once = Once(step, gathering(lambda: waiting, 8))

    def come() -> None:
        nonlocal waiting
        count = left.popleft()
        if left:
            asyncio.get_running_loop().call_soon(come)  # before the step of that round
        waiting += count
        if count:
            once()

    come()
    for _ in range(len(coming) + 2):
        await asyncio.sleep(0)
    assert found == taken


async def test_between_two_steps_lies_a_gap_unless_enough_waits() -> None:
    waiting = 1
    taken: list[int] = []
    long, short = (
        Once(lambda: taken.append(waiting), gathering(lambda: waiting, 8, gap))
        for gap in (1000.0, 0.01)
    )
    for once in (long, long):
        once()
        await asyncio.sleep(0.02)
    assert taken == [1]
    for _ in range(2):
        short()
        while taken[1:] == [] or short._asked:
            await asyncio.sleep(0.001)
    assert taken == [1, 1, 1]
    waiting = 8
    other = Once(lambda: taken.append(waiting), gathering(lambda: waiting, 8, 1000.0))
    for _ in range(2):
        other()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert taken == [1, 1, 1, 8, 8]


async def test_a_cancelled_caller_holds_up_nobody() -> None:
    first, second = (asyncio.create_task(turns().wait()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait_for(second, 10)
    assert first.cancelled()


async def test_a_step_that_fails_holds_up_nobody() -> None:
    def fail() -> None:
        raise RuntimeError("a fault of this step's")

    failures: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, about: failures.append(about))
    turns().call(fail)
    await asyncio.wait_for(turns().wait(), 10)
    assert len(failures) == 1

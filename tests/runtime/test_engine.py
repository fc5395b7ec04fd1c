"""The engine: who is answered when, in which batches, and what happens to bad batches and to those who go away."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import chain
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.runtime.engine import engine as engine_module
from heedful.runtime.engine.engine import SMALL_ROWS, WINDOW, Engine
from heedful.runtime.engine.work import Request, Steps, Work, run_now
from heedful.runtime.errors import InferenceFailed, OutOfMemory, Overloaded, Unavailable
from heedful.runtime.observer import Observer

pytestmark = pytest.mark.anyio
NOTHING_WAITS = {"parse": 0, "inference": 0}


class Squares:
    """A runner that squares numbers, each of which costs 1, and knows which batches it has run."""

    name, overhead, stage = "squares", 1, "inference"

    def __init__(self, budget: int = 8, seconds: float = 0.0) -> None:
        self.budget, self.seconds = budget, seconds
        self.batches: list[list[int]] = []

    def costs(self, items: Sequence[int]) -> list[int]:
        return [1] * len(items)

    def prepare(self, items: Sequence[int]) -> list[int]:
        return list(items)

    def run(self, prepared: list[int]) -> list[int]:
        self.batches.append(prepared)
        time.sleep(self.seconds)
        if any(item < 0 for item in prepared):
            raise ValueError("a negative number")
        return [item * item for item in prepared]


def squares(runner: Any, numbers: Sequence[int]) -> Steps[list[int]]:
    work = Work(runner, numbers)
    yield work
    return work.outputs


class Asked(Engine):
    """An engine whose requests are numbers for a runner."""

    async def ask(self, runner: Any, numbers: Sequence[int], *, bulk: bool = False) -> list[int]:
        request = Request(squares(runner, numbers), len(numbers))
        return await self.answer(request, bulk=bulk)

    def begin(self, *arguments: Any, **options: Any) -> asyncio.Task[list[int]]:
        return asyncio.create_task(self.ask(*arguments, **options))


@asynccontextmanager
async def started(threads: int = 0, max_inputs: int = 10_000) -> AsyncIterator[Asked]:
    engine = Asked(Observer(), max_inputs, threads)
    yield engine
    await engine.stop(0)


@pytest.fixture
async def engine() -> AsyncIterator[Asked]:
    async with started() as engine:
        yield engine


@settings(deadline=None, max_examples=50)
@given(st.lists(st.lists(st.integers(0, 99), max_size=40), max_size=6), st.integers(0, 2))
def test_the_engine_answers_as_a_caller_s_thread_does_and_runs_each_item_once(
    numbers: list[list[int]], threads: int
) -> None:
    runner = Squares(budget=3)

    async def answers() -> list[list[int]]:
        async with started(threads) as engine:
            found = await asyncio.gather(*(engine.ask(runner, some) for some in numbers))
            assert engine.waiting == NOTHING_WAITS
            return list(found)

    expected = [run_now(squares(Squares(5), some), max_items=2) for some in numbers]
    assert asyncio.run(answers()) == expected == [[n * n for n in some] for some in numbers]
    assert all(len(batch) <= runner.budget for batch in runner.batches)
    assert sorted(chain(*runner.batches)) == sorted(chain(*numbers))


async def test_requests_that_wait_together_share_batches(engine: Asked) -> None:
    runner = Squares(budget=8)
    await asyncio.gather(*(engine.ask(runner, [i]) for i in range(16)))
    assert len(runner.batches) == 2


async def test_interactive_requests_go_before_large_ones(engine: Asked) -> None:
    runner = Squares(budget=1, seconds=0.001)
    large = engine.begin(runner, range(1, 200))
    await asyncio.sleep(0.005)
    assert 0 < engine.waiting["inference"] < 199
    before = len(runner.batches)
    assert await engine.ask(runner, [0]) == [0]
    # Of the large one at most what runs in one step, and its turn after LARGE_WAIT.
    assert len(runner.batches) - before <= 5
    assert not large.done()
    await large


@pytest.mark.parametrize(("rows", "bulk"), [(SMALL_ROWS + 1, False), (1, True)])
async def test_large_requests_and_bulk_do_not_starve(engine: Asked, rows: int, bulk: bool) -> None:
    runner = Squares(budget=1, seconds=0.002)
    waiting = engine.begin(runner, range(rows), bulk=bulk)

    async def keep_busy() -> None:
        while not waiting.done():
            await engine.ask(runner, [7, 7])

    await asyncio.gather(*(keep_busy() for _ in range(3)))
    assert waiting.result() == [n * n for n in range(rows)]


async def test_requests_of_a_line_take_turns(engine: Asked) -> None:
    runner = Squares(budget=4, seconds=0.001)
    first, second = engine.begin(runner, range(1000)), engine.begin(runner, range(100))
    await second
    assert not first.done()
    assert sum(map(len, runner.batches)) <= 2 * 100 + 2 * WINDOW * runner.budget
    await first


async def test_a_bad_item_fails_alone(engine: Asked, caplog: pytest.LogCaptureFixture) -> None:
    runner = Squares()
    answers = (engine.ask(runner, numbers) for numbers in ([1], [-2], [3, 4]))
    first, bad, last = await asyncio.gather(*answers, return_exceptions=True)
    assert (first, last) == ([1], [9, 16])
    assert isinstance(bad, InferenceFailed)
    assert str(bad) == "the model failed on this input"
    assert "a negative number" in caplog.text
    assert engine.waiting == NOTHING_WAITS


class Small(Squares):
    """A runner with memory for three items, and none for item 13."""

    def run(self, prepared: list[int]) -> list[int]:
        if len(prepared) > 3 or 13 in prepared:
            self.batches.append(prepared)
            raise OutOfMemory("of the device")
        return super().run(prepared)


async def test_a_batch_that_is_too_large_is_answered_in_parts(
    engine: Asked, caplog: pytest.LogCaptureFixture
) -> None:
    runner = Small()
    assert await engine.ask(runner, range(8)) == [i * i for i in range(8)]
    with pytest.raises(OutOfMemory, match="of the device"):
        await engine.ask(runner, [13, 2])
    assert list(map(len, runner.batches)) == [8, 4, 2, 2, 4, 2, 2, 2, 1, 1]
    assert "Traceback" not in caplog.text
    assert run_now(squares(Small(), range(8)), max_items=5) == [i * i for i in range(8)]
    with pytest.raises(OutOfMemory):
        run_now(squares(Small(), [2, 13]))


async def test_large_requests_leave_a_reserve_to_interactive_ones() -> None:
    runner = Squares(budget=1, seconds=0.001)
    async with started(max_inputs=80) as engine:
        waiting = [engine.begin(runner, range(80))]
        await asyncio.sleep(0)
        for numbers, bulk in ((range(SMALL_ROWS + 1), False), ([1], True)):
            with pytest.raises(Overloaded) as caught:
                await engine.ask(runner, numbers, bulk=bulk)
            assert caught.value.retry_after >= 1
        waiting += [engine.begin(runner, [1] * 5) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(Overloaded, match="90 inputs are in flight and at most 90 may be"):
            await engine.ask(runner, [1])
        await asyncio.gather(*waiting)
        assert engine.in_flight == 0


async def test_a_request_that_was_cancelled_is_not_run(engine: Asked) -> None:
    runner = Squares(budget=4, seconds=0.002)
    gone = engine.begin(runner, range(1000, 2000))
    await asyncio.sleep(0.01)
    gone.cancel()
    await asyncio.wait([gone])
    ran = sum(map(len, runner.batches))
    assert engine.waiting["inference"] == 0
    assert await engine.ask(runner, [5]) == [25]
    await asyncio.sleep(0.02)
    assert sum(map(len, runner.batches)) == ran + 1 < 1000
    assert engine.waiting == NOTHING_WAITS
    assert engine.in_flight == 0


async def test_a_batch_that_never_ends_is_told_and_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    began, end = threading.Event(), threading.Event()

    class Hanging(Squares):
        def run(self, prepared: list[int]) -> list[int]:
            began.set()
            end.wait()
            return prepared

    monkeypatch.setattr(engine_module, "STUCK_SECONDS", 0.0)
    async with started(threads=1) as engine:
        waiting = engine.begin(Hanging(), [1])
        await asyncio.to_thread(began.wait)
        assert engine.stuck
        await engine.stop(0)
        with pytest.raises(Unavailable):
            await waiting
        end.set()

"""The scheduler over sessions that can be held, and that write down what they were given."""

import asyncio
import os
import threading
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.runtime.bundles.card import Card
from heedful.runtime.engine.batch_plan import WINDOW
from heedful.runtime.engine.calls import SMALL_ROWS
from heedful.runtime.engine.encoder_session import BUDGET, CUDA_BUDGET, EncoderSession
from heedful.runtime.engine.phases import SENTENCES, Phases
from heedful.runtime.engine.scheduler import FLUSH_INTERVAL, QUICK_SECONDS, Scheduler
from heedful.runtime.engine.session import SessionThreads
from heedful.runtime.engine.steps import Encoded
from heedful.runtime.errors import InferenceFailed, Unavailable
from heedful.runtime.observer import Observer
from heedful.text.arrays import Floats, Ints
from heedful.text.batch import Sentence
from heedful.text.graph import CPU, CUDA

pytestmark = pytest.mark.anyio

PATIENCE = 20.0
"""Seconds until a test that would hang fails instead."""
POISON, NAN = 666, 13


class HeldSession:
    """Gives (sum of ids, length) for each row. Runs at once, or when released; POISON makes it fail."""

    def __init__(self, provider: str = CPU) -> None:
        self.provider = provider
        self.batches: list[Ints] = []  # ids of each batch that was run
        self.go = threading.Event()
        self.go.set()
        self.one_at_a_time = False  # each batch then waits for a `go`
        self.held_from = 1  # length of the shortest batches that are held
        self.entered = threading.Semaphore(0)

    def run(self, feeds: Mapping[str, npt.NDArray[Any]]) -> Floats:
        ids = feeds["ids"]
        self.batches.append(ids)
        self.entered.release()
        assert ids.shape[1] < self.held_from or self.go.wait(PATIENCE)
        if self.one_at_a_time:
            self.go.clear()
        if POISON in ids:
            raise RuntimeError("poison")
        vectors = np.stack([ids.sum(axis=1), feeds["lengths"]], axis=1).astype(np.float32)
        vectors[(ids == NAN).any(axis=1)] = np.nan
        return vectors

    async def hold(self, scheduler: Scheduler, encoder: EncoderSession) -> asyncio.Task[Any]:
        """Occupy the session with a sentence of one token, until `go` is set.

        For long enough that no batch is taken for quick: one on the event loop would wait for a `go` from that loop.
        """
        self.go.clear()
        task = asyncio.create_task(scheduler.encode(encoder, [sentence(1)]))
        assert await asyncio.to_thread(self.entered.acquire, timeout=PATIENCE)
        await asyncio.sleep(QUICK_SECONDS)
        return task


class Watcher(Observer):
    def __init__(self) -> None:
        self.batches: list[tuple[str, int, int, float]] = []
        self.waiting: list[int] = []
        self.processor_seconds = 0.0

    def batch(
        self, model: str, inputs: int, tokens: int, padding: float, processor_seconds: float
    ) -> None:
        self.batches.append((model, inputs, tokens, padding))
        self.processor_seconds += processor_seconds

    def queue(self, stage: str, inputs: int) -> None:
        assert stage == "inference"
        self.waiting.append(inputs)


def sentence(*ids: int) -> Sentence:
    return Sentence(np.array(ids), np.arange(len(ids)))


def encoder(session: HeldSession, cost: str = "linear", name: str = "tiny") -> EncoderSession:
    fields: dict[str, Any] = {
        "name": name,
        "version": name,
        "tree": False,
        "alpha": None,
        "cost": cost,
        "files": {},
    }
    card = Card.model_construct(**fields)  # no more of it is read here
    return EncoderSession(card, session)


@asynccontextmanager
async def started(
    observer: Observer | None = None, *, threads: int = 1, phases: Phases | None = None
) -> AsyncIterator[Scheduler]:
    thread, small = SessionThreads(threads, niceness=1), SessionThreads(threads)
    scheduler = Scheduler(thread, small, observer or Observer(), phases or Phases(one_core=True))
    scheduler.start()
    try:
        async with asyncio.timeout(PATIENCE):
            yield scheduler
    finally:
        await scheduler.stop()
        await thread.stop()
        await small.stop()


@settings(max_examples=30)
@given(
    st.lists(
        st.lists(st.lists(st.integers(20, 90), min_size=1, max_size=12), min_size=1, max_size=9),
        min_size=1,
        max_size=6,
    )
)
def test_each_call_gets_its_own_vectors_in_order(calls: list[list[list[int]]]) -> None:
    async def scenario() -> None:
        session = HeldSession()
        async with started() as scheduler:
            used = encoder(session)
            answers = await asyncio.gather(
                *(scheduler.encode(used, [sentence(*ids) for ids in call]) for call in calls)
            )
        for call, answer in zip(calls, answers, strict=True):
            assert answer.vectors.tolist() == [[sum(ids), len(ids)] for ids in call]
            assert answer.queue >= 0
            assert answer.inference > 0

    asyncio.run(scenario())


class Where(HeldSession):
    """Notes whether each batch runs in the thread that made it, and takes `seconds`."""

    def __init__(self, seconds: float = 0.0) -> None:
        super().__init__()
        self.own, self.seconds = threading.get_ident(), seconds
        self.here: list[bool] = []

    def run(self, feeds: Mapping[str, npt.NDArray[Any]]) -> Floats:
        self.here.append(threading.get_ident() == self.own)
        time.sleep(self.seconds)
        return super().run(feeds)

    async def until_here(self, scheduler: Scheduler, used: EncoderSession, count: int = 1) -> None:
        """Make calls of so many sentences until one stays on the event loop: a busy machine makes some look slow."""
        self.here.clear()
        while not (self.here and self.here[-1]):
            await scheduler.encode(used, [sentence(20)])
            answer = await scheduler.encode(used, [sentence(20 + i) for i in range(count)])
            assert answer.vectors.tolist() == [[20 + i, 1] for i in range(count)]


async def test_a_short_call_that_comes_alone_is_encoded_on_the_event_loop() -> None:
    quick, slow = Where(), Where(2 * QUICK_SECONDS)
    async with started() as scheduler:
        await quick.until_here(scheduler, encoder(quick))
        assert quick.here[0] is False  # nothing was measured before
        await quick.until_here(scheduler, encoder(quick), 2)
        used = encoder(slow)
        for _ in range(3):
            await scheduler.encode(used, [sentence(20)])
        assert slow.here == [False] * 3


async def test_a_batch_is_counted_once_for_the_call_that_it_is_of() -> None:
    class Timed(Where):
        def run(self, feeds: Mapping[str, npt.NDArray[Any]]) -> Floats:
            started = time.perf_counter()
            try:
                return super().run(feeds)
            finally:
                self.took = time.perf_counter() - started

    session = Timed(0.05)
    async with started() as scheduler:
        call = [sentence(20 + i) for i in range(3)]
        started_at = time.perf_counter()
        answer = await scheduler.encode(encoder(session), call)
        whole = time.perf_counter() - started_at
    assert [len(batch) for batch in session.batches] == [3]
    assert session.took <= answer.inference <= whole


async def test_a_batch_s_processor_time_is_its_own_thread_s() -> None:
    class Busy(Where):
        def run(self, feeds: Mapping[str, npt.NDArray[Any]]) -> Floats:
            started = time.thread_time()
            while time.thread_time() < started + 0.01:
                pass
            found = super().run(feeds)  # which sleeps
            self.took = time.thread_time() - started
            return found

    session, watcher = Busy(0.05), Watcher()
    async with started(watcher) as scheduler:
        answer = await scheduler.encode(encoder(session), [sentence(20)])
    assert session.took <= watcher.processor_seconds <= answer.inference - 0.05 + 0.01


async def at_once(
    session: Where, scheduler: Scheduler, used: EncoderSession, *ids: int
) -> asyncio.Task[Encoded]:
    """The call of a request that is alone, done in its task's first step: if need be, after more tries."""
    while True:
        await session.until_here(scheduler, used)
        sentences = [sentence(each) for each in ids]
        task = asyncio.create_task(scheduler.encode(used, sentences, alone=True))
        await asyncio.sleep(0)
        if task.done():
            return task
        await asyncio.gather(task, return_exceptions=True)  # reads its error


async def test_a_call_that_is_alone_waits_for_no_others() -> None:
    session, watcher = Where(), Watcher()
    async with started(watcher) as scheduler:
        used = encoder(session)
        one = (await at_once(session, scheduler, used, 20)).result()
        assert one.vectors.tolist() == [[20, 1]]
        assert one.inference > 0
        two = (await at_once(session, scheduler, used, 20, 21)).result()
        assert two.vectors.tolist() == [[20, 1], [21, 1]]
        assert (session.here[-1], watcher.batches[-1]) == (True, ("tiny", 2, 2, 0.0))
        for bad in (POISON, NAN):
            with pytest.raises(InferenceFailed):
                (await at_once(session, scheduler, used, bad)).result()


async def test_one_that_takes_longer_than_expected_waits_for_all_its_batches() -> None:
    session = Where()
    async with started() as scheduler:
        used = encoder(session)
        await session.until_here(scheduler, used)
        session.seconds = 2 * FLUSH_INTERVAL  # the first batch is delivered before the second
        answer = await scheduler.encode(used, [sentence(20), sentence(*[40] * 40)], alone=True)
        assert answer.vectors.tolist() == [[20, 1], [1600, 40]]
        assert [len(batch) for batch in session.batches[-2:]] == [1, 1]


async def test_it_is_not_alone_where_a_thread_is_at_work() -> None:
    session = HeldSession()
    async with started() as scheduler:
        used = encoder(session)
        held = await session.hold(scheduler, used)
        other = asyncio.create_task(scheduler.encode(used, [sentence(30)], alone=True))
        await asyncio.sleep(0)
        assert not other.done()
        session.go.set()
        await held
        assert (await other).vectors.tolist() == [[30, 1]]


@pytest.mark.parametrize("threads", [1, 2])
async def test_calls_that_come_together_are_encoded_in_a_thread_that_has_a_core(
    threads: int,
) -> None:
    session = Where()
    async with started(threads=threads, phases=Phases(one_core=False)) as scheduler:
        used = encoder(session)
        await session.until_here(scheduler, used)
        await asyncio.gather(*(scheduler.encode(used, [sentence(20 + i)]) for i in range(2)))
        assert session.here[-1] is False


async def test_on_one_core_calls_that_come_together_are_encoded_on_the_event_loop() -> None:
    first, second = Where(), Where()
    async with started() as scheduler:
        one, other = encoder(first), encoder(second, name="other")
        while not (first.here and first.here[-1] and second.here[-1]):  # a busy machine is slow
            await first.until_here(scheduler, one)
            await second.until_here(scheduler, other)
            calls = [(one, 20), (other, 30), (one, 21)]
            found = await asyncio.gather(*(scheduler.encode(e, [sentence(i)]) for e, i in calls))
            assert [each.vectors.tolist() for each in found] == [[[20, 1]], [[30, 1]], [[21, 1]]]
        assert len(first.batches[-1]) == 2


def large(first: int) -> list[Sentence]:
    """Sentences of a call that is not small."""
    return [sentence(first + i) for i in range(SMALL_ROWS + 1)]


async def test_large_calls_wait_for_those_whose_texts_are_being_parsed() -> None:
    session, phases = HeldSession(), Phases(one_core=True)
    async with started(phases=phases) as scheduler:
        used = encoder(session)
        phases.parsing = True
        one = asyncio.create_task(scheduler.encode(used, large(20)))
        await asyncio.sleep(0.01)
        assert not session.batches
        other = asyncio.create_task(scheduler.encode(used, large(60)))
        await asyncio.sleep(0.01)
        phases.parsing = False
        await asyncio.gather(one, other)
        assert [len(batch) for batch in session.batches] == [2 * (SMALL_ROWS + 1)]
        phases.parsing = True
        await scheduler.encode(used, [sentence(20 + i) for i in range(SENTENCES)])
        await scheduler.encode(used, [sentence(20)])  # a small one waits for no text


def test_nobody_waits_for_texts_that_wait_themselves() -> None:
    phases = Phases(one_core=True)
    phases.parsing = True
    assert phases.gathers(SENTENCES - 1)
    assert not phases.gathers(SENTENCES)
    phases.encoding += 1  # until it ends nothing is parsed
    assert not phases.gathers(1)
    phases.encoding -= 1
    phases.resume()
    assert phases.gathers(1)


async def test_nothing_is_parsed_while_large_calls_are_encoded() -> None:
    session, phases = HeldSession(), Phases(one_core=True)
    parsed: list[str] = []
    async with started(phases=phases) as scheduler:
        used = encoder(session)
        held = await session.hold(scheduler, used)
        phases.after_encoding(lambda: parsed.append("beside a small call"))
        session.go.set()
        await held
        session.go.clear()
        call = asyncio.create_task(scheduler.encode(used, large(20)))
        assert await asyncio.to_thread(session.entered.acquire, timeout=PATIENCE)
        phases.after_encoding(lambda: parsed.append("after a large one"))
        assert parsed == ["beside a small call"]
        session.go.set()
        await call
        await asyncio.sleep(0)
        assert parsed == ["beside a small call", "after a large one"]


async def test_a_failure_on_the_event_loop_is_answered_as_one_in_a_thread() -> None:
    session = Where()
    async with started() as scheduler:
        used = encoder(session)
        for bad in (POISON, NAN):
            await session.until_here(scheduler, used)
            with pytest.raises(InferenceFailed):
                await scheduler.encode(used, [sentence(bad)])


async def test_what_waits_while_the_session_runs_goes_into_one_batch_and_equal_ones_once() -> None:
    session, watcher = HeldSession(), Watcher()
    async with started(watcher) as scheduler:
        used = encoder(session)
        first = await session.hold(scheduler, used)
        calls = [
            asyncio.create_task(scheduler.encode(used, [sentence(20, 30), sentence(40 + i)]))
            for i in range(3)
        ]
        await asyncio.sleep(0)
        assert max(watcher.waiting) == 6
        session.go.set()
        await first
        answers = [await call for call in calls]
    assert [len(batch) for batch in session.batches] == [1, 4]
    assert [answer.vectors[0].tolist() for answer in answers] == [[50, 2]] * 3
    assert [answer.vectors[1].tolist() for answer in answers] == [[40, 1], [41, 1], [42, 1]]
    assert watcher.batches == [("tiny", 1, 1, 0.0), ("tiny", 4, 5, pytest.approx(3 / 8))]
    assert watcher.waiting[-1] == 0


async def test_threads_run_their_shares_of_what_waits_side_by_side() -> None:
    session = HeldSession()
    session.go.clear()
    async with started(threads=2) as scheduler:
        used = encoder(session)
        calls = [
            asyncio.create_task(scheduler.encode(used, [sentence(20 + i), sentence(30 + i)]))
            for i in range(5)
        ]
        for _ in range(2):  # neither run has ended yet
            assert await asyncio.to_thread(session.entered.acquire, timeout=PATIENCE)
        assert sorted(len(batch) for batch in session.batches) == [5, 5]
        later = asyncio.create_task(scheduler.encode(used, [sentence(50)]))
        await asyncio.sleep(0.05)
        assert len(session.batches) == 2  # no third at a time
        session.go.set()
        answers = await asyncio.gather(*calls, later)
    expected = [[[20 + i, 1], [30 + i, 1]] for i in range(5)] + [[[50, 1]]]
    assert [answer.vectors.tolist() for answer in answers] == expected


async def test_models_are_not_mixed() -> None:
    one, other = HeldSession(), HeldSession()
    async with started() as scheduler:
        await asyncio.gather(
            scheduler.encode(encoder(one), [sentence(20)]),
            scheduler.encode(encoder(other, name="other"), [sentence(20), sentence(21)]),
        )
    assert [batch.tolist() for batch in one.batches] == [[[20]]]
    assert [batch.tolist() for batch in other.batches] == [[[20], [21]]]


async def test_a_failing_batch_fails_its_own_calls_and_no_others() -> None:
    session = HeldSession()
    async with started() as scheduler:
        used = encoder(session)
        first = await session.hold(scheduler, used)
        # Lengths far apart: the budget puts them into different batches.
        short = asyncio.create_task(scheduler.encode(used, [sentence(30)]))
        poisoned = asyncio.create_task(scheduler.encode(used, [sentence(*[POISON] * BUDGET)]))
        both = asyncio.create_task(
            scheduler.encode(used, [sentence(31), sentence(*[POISON] * BUDGET)])
        )
        await asyncio.sleep(0)
        session.go.set()
        answers = await asyncio.gather(first, short, poisoned, both, return_exceptions=True)
        assert [isinstance(answer, InferenceFailed) for answer in answers] == [
            *(False, False),
            *(True, True),
        ]
        assert answers[2] is not answers[3]
        assert (await scheduler.encode(used, [sentence(32)])).vectors.tolist() == [[32, 1]]


async def test_nan_fails_its_own_row_alone() -> None:
    session = HeldSession()
    async with started() as scheduler:
        used = encoder(session)
        first = await session.hold(scheduler, used)
        good = asyncio.create_task(scheduler.encode(used, [sentence(30)]))
        bad = asyncio.create_task(scheduler.encode(used, [sentence(NAN)]))
        await asyncio.sleep(0)
        session.go.set()
        await first
        assert (await good).vectors.tolist() == [[30, 1]]
        with pytest.raises(InferenceFailed, match="NaN"):
            await bad
    assert len(session.batches) == 2


async def test_a_session_that_gives_too_few_rows_leaves_nobody_waiting() -> None:
    class Short(HeldSession):
        def run(self, feeds: Mapping[str, npt.NDArray[Any]]) -> Floats:
            return super().run(feeds)[1:]

    async with started() as scheduler:
        with pytest.raises(InferenceFailed):
            await scheduler.encode(encoder(Short()), [sentence(20), sentence(21)])
        answer = await scheduler.encode(encoder(HeldSession()), [sentence(20)])
        assert answer.vectors.tolist() == [[20, 1]]


async def test_nor_does_one_whose_batch_is_delivered_before_its_window_ends() -> None:
    class Late(HeldSession):
        def run(self, feeds: Mapping[str, npt.NDArray[Any]]) -> Floats:
            time.sleep(2 * FLUSH_INTERVAL)
            rows = super().run(feeds)
            return rows[1:] if feeds["ids"].shape[1] == 1 else rows

    async with started() as scheduler:
        used = encoder(Late())
        short, long = await asyncio.gather(
            scheduler.encode(used, [sentence(20), sentence(21)]),
            scheduler.encode(used, [sentence(*[40] * BUDGET)]),
            return_exceptions=True,
        )
    assert isinstance(short, InferenceFailed)
    assert not isinstance(long, BaseException)
    assert long.vectors.tolist() == [[40 * BUDGET, BUDGET]]


async def test_a_cancelled_call_is_not_run_and_waits_no_more() -> None:
    session, watcher = HeldSession(), Watcher()
    async with started(watcher) as scheduler:
        used = encoder(session)
        first = await session.hold(scheduler, used)
        gone = asyncio.create_task(scheduler.encode(used, [sentence(50), sentence(51)]))
        await asyncio.sleep(0)
        assert watcher.waiting[-1] == 2
        gone.cancel()
        await asyncio.wait([gone])
        stays = asyncio.create_task(scheduler.encode(used, [sentence(51), sentence(52)]))
        await asyncio.sleep(0)
        assert watcher.waiting[-1] == 2
        session.go.set()
        await first
        await stays
    assert [sorted(batch[:, 0].tolist()) for batch in session.batches] == [[1], [51, 52]]


async def test_a_call_cancelled_after_it_was_taken_is_left_out_of_the_batches_to_come() -> None:
    session = HeldSession()
    session.one_at_a_time = True
    async with started() as scheduler:
        used = encoder(session)
        first = await session.hold(scheduler, used)
        short = asyncio.create_task(scheduler.encode(used, [sentence(30)]))
        long = asyncio.create_task(scheduler.encode(used, [sentence(*[40] * BUDGET)]))
        await asyncio.sleep(0)
        session.go.set()
        await first
        assert await asyncio.to_thread(session.entered.acquire, timeout=PATIENCE)  # short's batch
        long.cancel()
        await asyncio.wait([long])
        session.one_at_a_time = False
        session.go.set()
        await short
        await scheduler.encode(used, [sentence(31)])
    assert [len(batch[0]) for batch in session.batches] == [1, 1, 1]


async def test_a_session_that_runs_nothing_is_told_from_an_input_that_it_cannot_take() -> None:
    class Failing(HeldSession):
        longest = 0

        def run(self, feeds: Mapping[str, npt.NDArray[Any]]) -> Floats:
            if feeds["ids"].shape[1] > self.longest:
                raise ValueError("a fault of this session's")
            return super().run(feeds)

    session = Failing()
    async with started() as scheduler:
        used = encoder(session)
        for longest, failures in ((0, 1), (0, 2), (1, 0), (0, 1)):
            session.longest = longest
            with pytest.raises(InferenceFailed):
                await scheduler.encode(used, [sentence(20, 21)])
            while scheduler.failures.get(used, 0) != failures:
                await asyncio.sleep(0)
        session.longest = 2
        await scheduler.encode(used, [sentence(20, 21)])
        assert not scheduler.failures


async def test_a_session_that_failed_is_tried_again_without_a_request() -> None:
    class FailingTwice(HeldSession):
        left = 2

        def run(self, feeds: Mapping[str, npt.NDArray[Any]]) -> Floats:
            if self.left:
                self.left -= 1
                raise MemoryError
            return super().run(feeds)

    async with started() as scheduler:
        used = encoder(FailingTwice())
        with pytest.raises(InferenceFailed):
            await scheduler.encode(used, [sentence(20, 21)])
        while used not in scheduler.failures:
            await asyncio.sleep(0)
        while scheduler.failures:
            await asyncio.sleep(0.01)


async def test_a_single_sentence_overtakes_a_request_of_many() -> None:
    session = HeldSession()
    length = 64
    many = 5 * WINDOW * BUDGET // length
    async with started() as scheduler:
        used = encoder(session)
        first = await session.hold(scheduler, used)
        sentences = [sentence(*[100 + i] * length) for i in range(many)]
        large = asyncio.create_task(scheduler.encode(used, sentences))
        await asyncio.sleep(0)
        small = asyncio.create_task(scheduler.encode(used, [sentence(20)]))
        await asyncio.sleep(0)
        session.go.set()
        await first
        await small
        assert not large.done()
        await large
    ran = [20 in batch for batch in session.batches]
    assert ran.index(True) == 1


async def test_an_interactive_call_waits_for_one_batch_of_bulk_at_most() -> None:
    session = HeldSession()
    async with started() as scheduler:
        used = encoder(session)
        first = await session.hold(scheduler, used)
        session.one_at_a_time = True
        many = [sentence(*[100 + i] * 64) for i in range(WINDOW * BUDGET // 64)]
        bulk = asyncio.create_task(scheduler.encode(used, many, bulk=True))
        await asyncio.sleep(0)
        session.go.set()
        await first
        assert await asyncio.to_thread(session.entered.acquire, timeout=PATIENCE)  # bulk's first
        session.one_at_a_time = False
        # Too large for the thread of small calls.
        sentences = [sentence(20 + i) for i in range(SMALL_ROWS + 1)]
        interactive = asyncio.create_task(scheduler.encode(used, sentences))
        await asyncio.sleep(0)
        session.go.set()
        await asyncio.gather(interactive, bulk)
    assert [20 in batch for batch in session.batches] == [
        *(False, False, True),
        *[False] * (WINDOW - 1),
    ]


async def test_a_single_sentence_does_not_wait_for_a_large_request_that_has_begun() -> None:
    session = HeldSession()
    session.held_from = 2
    async with started() as scheduler:
        used = encoder(session)
        session.go.clear()
        many = [sentence(*[100 + i] * 64) for i in range(2 * WINDOW * BUDGET // 64)]
        large = asyncio.create_task(scheduler.encode(used, many))
        assert await asyncio.to_thread(session.entered.acquire, timeout=PATIENCE)
        for _ in range(3):
            await scheduler.encode(used, [sentence(20)])
        assert not large.done()
        session.go.set()
        await large
    assert [20 in batch for batch in session.batches[:5]] == [False, True, True, True, False]


async def test_batches_of_small_calls_have_the_usual_priority() -> None:
    class Watched(HeldSession):
        def run(self, feeds: Mapping[str, npt.NDArray[Any]]) -> Floats:
            thread = threading.get_native_id()
            priorities.append(os.getpriority(os.PRIO_PROCESS, thread))
            return super().run(feeds)

    priorities: list[int] = []
    async with started() as scheduler:
        # The first batch of an encoder is never quick: how long one takes is not known yet.
        await scheduler.encode(encoder(Watched()), [sentence(20)])
        many = [sentence(100 + i) for i in range(SMALL_ROWS + 1)]
        await scheduler.encode(encoder(Watched()), many)
    usual = os.getpriority(os.PRIO_PROCESS, 0)
    assert priorities == [usual, usual + 1]


async def test_the_thread_for_small_calls_takes_nothing_while_others_are_at_small_calls() -> None:
    session = HeldSession()
    async with started() as scheduler:
        used = encoder(session)
        first = await session.hold(scheduler, used)
        waiting = [
            asyncio.create_task(scheduler.encode(used, [sentence(20 + i)])) for i in range(4)
        ]
        await asyncio.sleep(0.05)  # nothing can be waited for: nothing may happen
        assert len(session.batches) == 1
        session.go.set()
        await asyncio.gather(first, *waiting)
    assert len(session.batches) == 2


@pytest.mark.parametrize("cost", ["linear", "quadratic"])
@pytest.mark.parametrize(("provider", "budget"), [(CPU, BUDGET), (CUDA, CUDA_BUDGET)])
async def test_no_batch_costs_more_than_the_budget(cost: str, provider: str, budget: int) -> None:
    session = HeldSession(provider)
    rng = np.random.default_rng(0)
    sentences = [
        sentence(*[int(i)] * int(length))
        for i, length in enumerate(rng.integers(1, 200, size=300), start=1000)
    ]
    async with started() as scheduler:
        used = encoder(session, cost)
        answer = await scheduler.encode(used, sentences)
    assert answer.vectors[:, 1].tolist() == [len(s) for s in sentences]
    assert 1 < len(session.batches) < 300
    for ids in session.batches:
        rows, longest = ids.shape
        of_one = longest if cost == "linear" else max(longest, -(-longest * longest // 16))
        assert rows == 1 or rows * of_one <= budget


async def test_the_event_loop_is_free_while_the_session_runs() -> None:
    session = HeldSession()
    async with started() as scheduler:
        task = await session.hold(scheduler, encoder(session))  # the loop continues from here
        assert not task.done()
        session.go.set()
        await task


async def test_stopping_answers_everyone() -> None:
    session = HeldSession()
    async with started() as scheduler:
        used = encoder(session)
        running = await session.hold(scheduler, used)
        waiting = asyncio.create_task(scheduler.encode(used, [sentence(20)]))
        await asyncio.sleep(0)
        await scheduler.stop()
        answers = await asyncio.gather(running, waiting, return_exceptions=True)
        assert [type(answer) for answer in answers] == [Unavailable, Unavailable]
        with pytest.raises(Unavailable):
            await scheduler.encode(used, [sentence(20)])
        session.go.set()

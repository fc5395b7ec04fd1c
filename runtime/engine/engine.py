"""The engine of a process: runs the steps of all requests, and their work in shared batches.

It works on the event loop, for STEP_SECONDS and the rest of a batch; then the loop reads and writes. What is
interactive (few rows, not bulk) goes first. Large requests and bulk go before it once they have waited long enough,
so nothing starves. With threads, for a device or where the user asks for them, the batches of models run there.
"""

import asyncio
import logging
import math
import time
from collections import OrderedDict, deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from heedful.runtime.engine.health import Health
from heedful.runtime.engine.session import EncoderRunner
from heedful.runtime.engine.work import Request, Steps, Work, failure
from heedful.runtime.errors import InferenceFailed, OutOfMemory, Overloaded, Unavailable
from heedful.runtime.observer import Observer
from heedful.text.batch import Runner, cheapest

log = logging.getLogger(__name__)

T = TypeVar("T")

SMALL_ROWS = 16
"""A request of at most as many rows is interactive, unless it is bulk."""
STEP_SECONDS = 0.002
"""How long the engine goes on before the event loop reads and writes."""
LARGE_WAIT, BULK_WAIT = 0.05, 0.2
"""Seconds without a turn after which large requests, and bulk, go before what is interactive."""
WINDOW = 12
"""Batches that are planned at once: more means less padding, fewer lets new requests in sooner. Of what 6 batches of
SNLI's sentences hold 6 % is padding, of 12 2 %."""
RESERVE_SHARE = 1 / 8
"""Interactive requests may exceed the queue's limit by this share of it: large ones cannot shut them out."""
RETRY_SECONDS = 1
"""After which a refused client may ask again."""
STUCK_SECONDS = 120.0
"""A batch in a thread takes less."""


@dataclass(slots=True, eq=False)
class Entry:
    """A request in the engine."""

    steps: Steps[Any]
    line: "Line"
    future: asyncio.Future[Any]
    work: Work[Any] | None = None
    """What it waits for."""


Batch = list[tuple[Work[Any], int]]
"""Works, and which item of each."""


class Plan(NamedTuple):
    """A batch, and whether it is full enough not to wait for more items."""

    batch: Batch
    is_full: bool


class Outcome(NamedTuple):
    """What running a batch has given."""

    outputs: list[Any]
    """For each item its output, or InferenceFailed."""
    seconds: float
    processor_seconds: float


class Line:
    """Requests of one priority. Their runners take turns, and the requests of one runner do, an item each."""

    def __init__(self, max_wait: float) -> None:
        """`max_wait`: seconds without a turn after which it goes before lines of a higher priority."""
        self.max_wait = max_wait
        self.served_at = 0.0
        """When it had its last turn, or somebody came to wait in it."""
        self.paused: deque[Entry] = deque()
        self.works: OrderedDict[Runner[Any], deque[Work[Any]]] = OrderedDict()
        self.planned: dict[Runner[Any], deque[Plan]] = {}
        self.parts = 1
        """In how many a runner's batch is divided."""

    def put(self, entry: Entry) -> None:
        """Queue the entry for its work, or without any for its next step."""
        if not (self.paused or self.works):
            self.served_at = time.monotonic()
        if entry.work is None:
            self.paused.append(entry)
            return
        if entry.work.runner not in self.works:
            self.works[entry.work.runner] = deque()
            self.planned[entry.work.runner] = deque()
            self.works.move_to_end(entry.work.runner, last=entry.work.runner.stage != "parse")
        self.works[entry.work.runner].append(entry.work)

    def take(self, runner: Runner[Any]) -> Batch:
        """The runner's next batch, without items of requests that are done; empty if nobody waits for it."""
        works, planned = self.works[runner], self.planned[runner]
        batch: Batch = []
        while not batch and (works or planned):
            if not planned or (works and not planned[0].is_full):
                self._plan(runner)
            if planned:
                batch = [(work, i) for work, i in planned.popleft().batch if _is_awaited(work)]
        if works or planned:
            self.works.move_to_end(runner, last=runner.stage != "parse")
        else:
            del self.works[runner], self.planned[runner]
        return batch

    def _plan(self, runner: Runner[Any]) -> None:
        """Plan batches of what waits: an item of each request in turn, up to a window. The oldest go first."""
        works, planned = self.works[runner], self.planned[runner]
        items: Batch = sorted(
            [item for plan in planned for item in plan.batch], key=lambda item: item[0].number
        )
        planned.clear()
        costs = [work.costs[i] for work, i in items]
        budget = runner.budget // self.parts
        left = WINDOW * runner.budget - sum(costs)
        while works and left > 0:
            work = works.popleft()
            if not _is_awaited(work):
                continue
            items.append((work, work.taken))
            costs.append(work.costs[work.taken])
            left -= costs[-1]
            work.taken += 1
            if work.taken < len(work.items):
                works.append(work)
        groups = [[0]]  # one item needs no plan
        if len(items) > 1:
            groups = sorted(cheapest(costs, budget, runner.overhead), key=min)
        for places in groups if items else ():
            cost = sum([costs[place] for place in places])
            planned.append(Plan([items[place] for place in places], 2 * cost > budget))


class Engine:
    """For the event loop's thread only."""

    def __init__(
        self, observer: Observer, max_inputs: int = 2**31, threads: int | None = None
    ) -> None:
        """At most `max_inputs` rows are in flight. Without `threads` models run on the event loop."""
        self.health = Health()
        self.in_flight = 0
        """Rows of all requests."""
        self._observer, self._max_inputs = observer, max_inputs
        self._interactive, self._large, self._bulk = self._lines = (
            Line(math.inf),
            Line(LARGE_WAIT),
            Line(BULK_WAIT),
        )
        self.waiting = {"parse": 0, "inference": 0}
        """Items without an output, by stage."""
        self._open: set[Entry] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._number = 0  # of works so far
        self._is_scheduled = self._is_stopped = False
        self._threads = ThreadPoolExecutor(threads, "session") if threads else None
        self._free = threads or 0
        self._began: dict[int, float] = {}
        """When the batches in threads have begun, by number."""

    async def answer(self, request: Request[T]) -> T:
        """Run the request's steps. A request that is cancelled is dropped.

        Raises what the steps raise, Overloaded, InferenceFailed, and Unavailable once the engine is stopped.
        """
        if self._is_stopped:
            raise Unavailable("the service is shutting down")
        rows, line, limit = request.rows, self._large, self._max_inputs
        if request.bulk:
            line = self._bulk
        elif rows <= SMALL_ROWS:
            line, limit = self._interactive, int(limit * (1 + RESERVE_SHARE))
        if self.in_flight + rows > limit:
            raise Overloaded(
                f"{self.in_flight} inputs are in flight and at most {limit} may be: "
                f"try again in {RETRY_SECONDS} s",
                retry_after=RETRY_SECONDS,
            )
        entry = Entry(request.steps, line, asyncio.get_running_loop().create_future())
        self.in_flight += rows
        self._open.add(entry)
        self._idle.clear()
        try:
            if line is self._interactive:
                self._advance(entry)
            else:
                self._pause(entry)
            result: T = await entry.future
            return result
        finally:
            self.in_flight -= rows
            self._open.discard(entry)
            if not self._open:
                self._idle.set()
            if entry.work is not None:  # it was cancelled
                self.waiting[entry.work.runner.stage] -= entry.work.left
            entry.steps.close()

    async def wait_until_idle(self) -> None:
        """Return when no request is in flight."""
        await self._idle.wait()

    @property
    def stuck(self) -> bool:
        """Whether a batch in a thread has taken longer than any can."""
        now = time.monotonic()
        return any(now - began > STUCK_SECONDS for began in self._began.values())

    async def stop(self) -> None:
        """Fail what is not answered with Unavailable, and end the threads unless one is stuck."""
        self._is_stopped = True
        self.health.stop()
        for entry in self._open:
            if not entry.future.done():
                entry.future.set_exception(Unavailable("the service is shutting down"))
        if self._threads:
            await asyncio.to_thread(self._threads.shutdown, wait=not self.stuck)

    def _pause(self, entry: Entry) -> None:
        """Go on with the entry when its turn comes."""
        entry.work = None
        entry.line.put(entry)
        self._wake()

    def _advance(self, entry: Entry, error: InferenceFailed | None = None) -> None:
        """Run the entry to its next work, or to its end; with an error, that of its work."""
        entry.work = None
        try:
            work = entry.steps.throw(error) if error else next(entry.steps)
            while work is not None and not work.items:
                work = next(entry.steps)
        except StopIteration as end:
            entry.future.set_result(end.value)
        except Exception as raised:  # noqa: BLE001  # the caller gets it
            entry.future.set_exception(raised)
        else:
            if work is not None:
                entry.work, work.request = work, entry
                self._number += 1
                work.number = self._number
                self.waiting[work.runner.stage] += work.left
            entry.line.put(entry)
            self._wake()

    def _wake(self) -> None:
        """Have a step run, after the event loop has read what has arrived."""
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._step)

    def _step(self) -> None:
        """Run batches and steps of requests for STEP_SECONDS, or one of a large request."""
        until = time.monotonic() + STEP_SECONDS
        try:
            line: Line | None = self._interactive
            while line is self._interactive and (now := time.monotonic()) < until:
                line = self._serve(now)
            if line is None:
                return
        finally:  # where a bug raises too, or no step would ever run again
            self._is_scheduled = False
        self._is_scheduled = True
        # After two rounds of the event loop: a request that has arrived meanwhile begins in the first.
        loop = asyncio.get_running_loop()
        loop.call_soon(loop.call_soon, self._step)

    def _serve(self, now: float) -> Line | None:
        """Run a step of a request, or a batch, of the line whose turn it is; None where nothing can run now."""
        lines = [line for line in self._lines if line.paused or line.works]
        for line in reversed(lines):
            if now - line.served_at > line.max_wait:
                lines.insert(0, line)
                break
        self._large.parts = self._bulk.parts = 2 if now - self._interactive.served_at < 1 else 1
        for line in lines:
            line.served_at = now
            while line.paused:
                entry = line.paused.popleft()
                if not entry.future.done():
                    self._advance(entry)
                    return line
            # The stage where more waits runs: both have enough to choose from, and their batches little padding.
            enough = self.waiting["inference"] > self.waiting["parse"] and len(line.works) > 1
            for runner in list(line.works):
                on_loop = runner.stage == "parse" or self._threads is None
                if (on_loop or self._free) and not (enough and runner.stage == "parse"):
                    self._run(runner, line.take(runner), None if on_loop else self._threads)
                    return line
        return None

    def _run(self, runner: Runner[Any], batch: Batch, threads: ThreadPoolExecutor | None) -> None:
        """Run the batch and deliver its outputs: now, or when a thread has run it."""
        items = [work.items[i] for work, i in batch]
        if not items:
            return
        if threads is None:
            self._deliver(runner, batch, _outcome(runner, items))
            return
        number = id(batch)
        self._free -= 1
        self._began[number] = time.monotonic()

        def deliver(ended: asyncio.Future[Outcome]) -> None:
            self._free += 1
            del self._began[number]
            self._deliver(runner, batch, ended.result())
            self._wake()

        loop = asyncio.get_running_loop()
        loop.run_in_executor(threads, _outcome, runner, items).add_done_callback(deliver)

    def _deliver(self, runner: Runner[Any], batch: Batch, outcome: Outcome) -> None:
        """Give every work its outputs, and run those requests on that have all of theirs."""
        failures: dict[Work[Any], InferenceFailed] = {}
        works: dict[Work[Any], None] = {}
        delivered = 0
        for (work, i), output in zip(batch, outcome.outputs, strict=True):
            if _is_awaited(work):
                works[work] = None
                delivered += 1
                work.outputs[i] = output
                work.left -= 1
                if isinstance(output, InferenceFailed):
                    failures[work] = output
        if any(not isinstance(failed, OutOfMemory) for failed in failures.values()):
            self.health.failed(runner)
        elif not failures:
            if self.health.failures:
                self.health.succeeded(runner)
            if isinstance(runner, EncoderRunner):
                sentences = [work.items[i] for work, i in batch]
                self._observer.batch(
                    runner.name, len(batch), *runner.shape(sentences), outcome.processor_seconds
                )
        self.waiting[runner.stage] -= delivered
        for work in works:
            work.seconds += outcome.seconds
            if work in failures:
                self.waiting[runner.stage] -= work.left
                self._advance(work.request, failures[work])
            elif not work.left and work.request.line is self._interactive:
                self._advance(work.request)
            elif not work.left:
                self._pause(work.request)


def _is_awaited(work: Work[Any]) -> bool:
    """Whether its request still waits for it."""
    return work.request.work is work and not work.request.future.done()


def _outcome(runner: Runner[Any], items: list[Any]) -> Outcome:
    """Run a batch."""
    began, processor_began = time.monotonic(), time.thread_time()
    outputs = _in_halves(runner, items)
    seconds, processor_seconds = time.monotonic() - began, time.thread_time() - processor_began
    return Outcome(outputs, seconds, processor_seconds)


def _in_halves(runner: Runner[Any], items: list[Any]) -> list[Any]:
    """For each item its output, or InferenceFailed. A batch that fails runs again in halves.

    So what is too large for the memory is answered, and a bad item fails alone.
    """
    try:
        return list(runner.run(runner.prepare(items)))
    except OutOfMemory as error:
        log.warning("%s has no memory for a batch of %d", runner.name, len(items))
        failed: InferenceFailed = error
    except Exception:  # whatever a graph raises, the callers need an answer
        log.exception("%s failed on %d items", runner.name, len(items))
        failed = failure(runner)
    if len(items) == 1:
        return [failed]
    middle = len(items) // 2
    return [*_in_halves(runner, items[:middle]), *_in_halves(runner, items[middle:])]

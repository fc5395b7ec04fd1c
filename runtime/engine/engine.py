"""The engine of a process: runs the steps of all requests, and their work in shared batches.

It works on the event loop, for STEP_SECONDS and the rest of a batch; then the loop reads and writes. Interactive
requests (few rows, not bulk) go first. Large requests and bulk go first once they have waited long enough, so nothing
starves. With threads, for a device or where the user configures them, the batches of models run there.
"""

import asyncio
import logging
import math
import time
from collections import OrderedDict, deque
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

from heedful.runtime.engine.health import Health
from heedful.runtime.engine.session import EncoderRunner
from heedful.runtime.engine.work import Request, Work, failure
from heedful.runtime.errors import InferenceFailed, OutOfMemory, Overloaded, Unavailable
from heedful.runtime.observer import Observer
from heedful.text.batch import Runner, cheapest

log = logging.getLogger(__name__)

T = TypeVar("T")

SMALL_ROWS = 16
"""A request of at most this many rows is interactive, unless it is bulk."""
STEP_SECONDS = 0.002
"""How long the engine goes on before the event loop reads and writes."""
LARGE_WAIT, BULK_WAIT = 0.05, 0.2
"""Seconds without a turn after which large requests, and bulk, go before interactive ones."""
WINDOW = 12
"""Batches that are planned together: more of them have less padding, fewer let new requests in sooner. With SNLI's
sentences 6 % of 6 batches is padding, and 2 % of 12."""
RESERVE_SHARE = 1 / 8
"""Interactive requests may exceed the limit of rows by this share: large requests cannot shut them out."""
STUCK_SECONDS = 120.0
"""A batch in a thread that takes longer is stuck."""


Batch = list[tuple[Work[Any], int]]
"""For each item its work, and its index there."""
Outcome = tuple[list[Any], float, float]
"""Of a batch: for each item an output or InferenceFailed; its seconds, and those of the processor."""


class Plan(NamedTuple):
    """A batch, and whether it is full enough not to wait for more items."""

    batch: Batch
    is_full: bool


class Queue:
    """Requests of one priority. Their runners take turns, and the requests of a runner, by an item each."""

    def __init__(self, max_wait: float) -> None:
        """`max_wait`: seconds without a turn after which the queue goes before those of higher priority."""
        self.max_wait = max_wait
        self.served_at = 0.0
        """When it had its last turn, or when a request came while it was empty."""
        self.paused: deque[Request[Any]] = deque()
        self.works: OrderedDict[Runner[Any], deque[Work[Any]]] = OrderedDict()
        self.planned: dict[Runner[Any], deque[Plan]] = {}
        self.budget_divisor = 1
        """A batch may cost a runner's budget divided by this."""

    def put(self, request: Request[Any]) -> None:
        """Queue the request for its work; for its next step if it has no work."""
        if not (self.paused or self.works):
            self.served_at = time.monotonic()
        if request.work is None:
            self.paused.append(request)
            return
        runner = request.work.runner
        if runner not in self.works:
            self.works[runner], self.planned[runner] = deque(), deque()
            self.works.move_to_end(runner, last=runner.stage != "parse")
        self.works[runner].append(request.work)

    def take(self, runner: Runner[Any]) -> Batch:
        """The runner's next batch, without items of requests that are done; empty if no request waits for it."""
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
        """Plan batches of waiting items: one of each request in turn, up to a window. The oldest go first."""
        works, planned = self.works[runner], self.planned[runner]
        items: Batch = sorted(
            [item for plan in planned for item in plan.batch], key=lambda item: item[0].began
        )
        planned.clear()
        costs = [work.costs[i] for work, i in items]
        budget = runner.budget // self.budget_divisor
        remaining = WINDOW * runner.budget - sum(costs)
        while works and remaining > 0:
            work = works.popleft()
            if not _is_awaited(work):
                continue
            items.append((work, work.planned))
            costs.append(work.costs[work.planned])
            remaining -= costs[-1]
            work.planned += 1
            if work.planned < len(work.items):
                works.append(work)
        groups = [[0]]  # a single item needs no plan
        if len(items) > 1:
            groups = sorted(cheapest(costs, budget, runner.overhead), key=min)
        for group in groups if items else ():
            cost = sum([costs[place] for place in group])
            planned.append(Plan([items[place] for place in group], 2 * cost > budget))


class Engine:
    """Only the event loop's thread may use it."""

    def __init__(self, observer: Observer, max_inputs: int, threads: int) -> None:
        """At most `max_inputs` rows are in flight. With 0 `threads` models run on the event loop."""
        self.health = Health()
        self.in_flight = 0
        """Rows of all requests."""
        self._observer, self._max_inputs = observer, max_inputs
        self._interactive, self._large, self._bulk = self._queues = (
            Queue(math.inf),
            Queue(LARGE_WAIT),
            Queue(BULK_WAIT),
        )
        self.waiting = {"parse": 0, "inference": 0}
        """Items without an output, by stage."""
        self._open: set[Request[Any]] = set()
        self._is_scheduled = self._is_stopped = False
        self._threads = ThreadPoolExecutor(threads, "session") if threads else None
        self._thread_count = threads
        self._batch_starts: dict[int, float] = {}
        """When the batches in threads began, by the batch's id."""

    async def answer(self, request: Request[T], *, bulk: bool = False) -> T:
        """Run the request's steps; with `bulk` it waits while others are answered. A request that is cancelled is
        dropped.

        Raises what the steps raise, Overloaded, InferenceFailed, and Unavailable once the engine is stopped.
        """
        if self._is_stopped:
            raise Unavailable("the service is shutting down")
        rows, queue, limit = request.rows, self._large, self._max_inputs
        if bulk:
            queue = self._bulk
        elif rows <= SMALL_ROWS:
            queue, limit = self._interactive, int(limit * (1 + RESERVE_SHARE))
        if self.in_flight + rows > limit:
            raise Overloaded(
                f"{self.in_flight} inputs are in flight and at most {limit} may be: "
                f"try again in {Overloaded.retry_after} s"
            )
        request.queue, request.future = queue, asyncio.get_running_loop().create_future()
        self.in_flight += rows
        self._open.add(request)
        try:
            self._go_on(request)
            return await request.future
        finally:
            self.in_flight -= rows
            self._open.discard(request)
            if request.work is not None:  # it has failed, or was cancelled
                self.waiting[request.work.runner.stage] -= request.work.left
            request.steps.close()

    @property
    def stuck(self) -> bool:
        """Whether a batch in a thread takes longer than STUCK_SECONDS."""
        now = time.monotonic()
        return any(now - start > STUCK_SECONDS for start in self._batch_starts.values())

    async def stop(self, timeout: float) -> None:
        """Answer the open requests within `timeout` seconds, and fail the others with Unavailable.

        Then end the threads, unless a batch is stuck.
        """
        until = time.monotonic() + timeout
        while self._open and time.monotonic() < until:
            await asyncio.sleep(0.01)
        self._is_stopped = True
        self.health.stop()
        for request in self._open:
            if not request.future.done():
                request.future.set_exception(Unavailable("the service is shutting down"))
        if self._threads:
            await asyncio.to_thread(self._threads.shutdown, wait=not self.stuck)

    def _go_on(self, request: Request[Any]) -> None:
        """Go on with the request, now if it is interactive, else when its turn comes."""
        request.work = None
        if request.queue is self._interactive:
            self._advance(request)
        else:
            request.queue.put(request)
            self._wake()

    def _advance(self, request: Request[Any]) -> None:
        """Run the request, which has no work, to its next work or to its end."""
        try:
            work = next(request.steps)
            while work is not None and not work.items:
                work = next(request.steps)
        except StopIteration as end:
            request.future.set_result(end.value)
        except Exception as raised:  # noqa: BLE001  # the caller gets it
            request.future.set_exception(raised)
        else:
            if work is not None:
                request.work, work.request = work, request
                self.waiting[work.runner.stage] += work.left
            request.queue.put(request)
            self._wake()

    def _wake(self) -> None:
        """Schedule a step, after the event loop has read what has arrived."""
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._step)

    def _step(self) -> None:
        """Run batches and steps of interactive requests for STEP_SECONDS, or one of another request."""
        until = time.monotonic() + STEP_SECONDS
        try:
            queue: Queue | None = self._interactive
            while queue is self._interactive and (now := time.monotonic()) < until:
                queue = self._serve(now)
            if queue is None:
                return
        finally:  # also where a bug raises, or no step would ever run again
            self._is_scheduled = False
        self._is_scheduled = True
        # After two rounds of the event loop: a request that has arrived meanwhile begins in the first.
        loop = asyncio.get_running_loop()
        loop.call_soon(loop.call_soon, self._step)

    def _serve(self, now: float) -> Queue | None:
        """Run a step of a request, or a batch, of the queue whose turn it is; None where nothing can run now."""
        queues = [queue for queue in self._queues if queue.paused or queue.works]
        for queue in reversed(queues):
            if now - queue.served_at > queue.max_wait:
                queues.insert(0, queue)
                break
        interactive_waits = now - self._interactive.served_at < 1
        self._large.budget_divisor = self._bulk.budget_divisor = 2 if interactive_waits else 1
        for queue in queues:
            queue.served_at = now
            while queue.paused:
                request = queue.paused.popleft()
                if not request.future.done():
                    self._advance(request)
                    return queue
            # The stage with more waiting items runs: both can then choose among many, and their batches have little
            # padding.
            inference_first = (
                self.waiting["inference"] > self.waiting["parse"] and len(queue.works) > 1
            )
            for runner in list(queue.works):
                on_loop = runner.stage == "parse" or self._threads is None
                if (on_loop or len(self._batch_starts) < self._thread_count) and not (
                    inference_first and runner.stage == "parse"
                ):
                    self._run(runner, queue.take(runner), None if on_loop else self._threads)
                    return queue
        return None

    def _run(self, runner: Runner[Any], batch: Batch, threads: ThreadPoolExecutor | None) -> None:
        """Run the batch and deliver its outputs: now, or when a thread has run it."""
        items = [work.items[i] for work, i in batch]
        if not items:
            return
        if threads is None:
            self._deliver(runner, batch, _outcome(runner, items))
            return
        self._batch_starts[id(batch)] = time.monotonic()

        def deliver(future: asyncio.Future[Outcome]) -> None:
            del self._batch_starts[id(batch)]
            self._deliver(runner, batch, future.result())
            self._wake()

        loop = asyncio.get_running_loop()
        loop.run_in_executor(threads, _outcome, runner, items).add_done_callback(deliver)

    def _deliver(self, runner: Runner[Any], batch: Batch, outcome: Outcome) -> None:
        """Give the works their outputs, and continue the requests that have all of theirs."""
        outputs, seconds, processor_seconds = outcome
        failures: dict[Work[Any], InferenceFailed] = {}
        works: dict[Work[Any], None] = {}
        delivered = 0
        for (work, i), output in zip(batch, outputs, strict=True):
            if _is_awaited(work):
                works[work] = None
                delivered += 1
                work.outputs[i] = output
                work.left -= 1
                if isinstance(output, InferenceFailed):
                    failures[work] = output
        if isinstance(runner, EncoderRunner):
            if any(not isinstance(failed, OutOfMemory) for failed in failures.values()):
                self.health.check(runner)
            elif not failures:
                self.health.failures.pop(runner, None)
                tokens, padding = runner.shape([work.items[i] for work, i in batch])
                self._observer.batch(runner.name, len(batch), tokens, padding, processor_seconds)
        self.waiting[runner.stage] -= delivered
        for work in works:
            work.seconds += seconds
            if work in failures:
                work.request.future.set_exception(failures[work])
            elif not work.left:
                if runner.stage == "inference":
                    work.request.waits.total += time.perf_counter() - work.began
                    work.request.waits.batches += work.seconds
                self._go_on(work.request)


def _is_awaited(work: Work[Any]) -> bool:
    """Whether the work's request still waits for it."""
    return work.request.work is work and not work.request.future.done()


def _outcome(runner: Runner[Any], items: list[Any]) -> Outcome:
    began, processor_began = time.monotonic(), time.thread_time()
    outputs = _run_with_retries(runner, items)
    return outputs, time.monotonic() - began, time.thread_time() - processor_began


def _run_with_retries(runner: Runner[Any], items: list[Any]) -> list[Any]:
    """An output for each item, or InferenceFailed. A batch that fails runs again in halves.

    So a batch too large for the memory is answered, and a bad item fails without the others.
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
    return [*_run_with_retries(runner, items[:middle]), *_run_with_retries(runner, items[middle:])]

"""The engine of a process: runs the steps of all requests, and their work in shared batches.

It works on the event loop, at most STEP_SECONDS at a time and a batch more; then the loop reads and writes. What is
interactive (few rows, not bulk) goes first. Large requests and bulk go before it once they have waited long enough,
so nothing starves. With threads, for a device or where the user asks for them, the batches of models run there.
"""

import asyncio
import logging
import math
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from heedful.runtime.engine.admission import Admission
from heedful.runtime.engine.health import Health
from heedful.runtime.engine.lines import SMALL_ROWS, Batch, Entry, Line, item_of
from heedful.runtime.engine.work import Request, failure
from heedful.runtime.errors import InferenceFailed, Unavailable
from heedful.runtime.observer import Observer
from heedful.text.batch import Runner

log = logging.getLogger(__name__)

T = TypeVar("T")
Outcome = tuple[list[Any], float, float]
"""An output or InferenceFailed for each item of a batch, its seconds, and those of its processor."""

STEP_SECONDS = 0.002
"""How long the engine goes on before the event loop reads and writes."""
LARGE_WAIT, BULK_WAIT = 0.01, 0.05
"""Seconds after which large requests, and bulk, go before what is interactive."""
STUCK_SECONDS = 120.0
"""A batch in a thread takes less."""


class Engine:
    """For the event loop's thread only."""

    def __init__(self, admission: Admission, observer: Observer, threads: int = 0) -> None:
        """Without `threads` models run on the event loop."""
        self.admission = admission
        self.health = Health()
        self._observer = observer
        self._interactive, self._large, self._bulk = self._lines = (
            Line(math.inf),
            Line(LARGE_WAIT),
            Line(BULK_WAIT),
        )
        self._waiting = {"parse": 0, "inference": 0}
        """Items without an output, by stage."""
        self._open: set[Entry] = set()
        self._is_scheduled = False
        self._is_stopped = False
        self._threads = ThreadPoolExecutor(threads, "session") if threads else None
        self._free = threads
        self._started_at: dict[int, float] = {}
        """When the batches in threads have begun, by number."""

    async def answer(self, request: Request[T]) -> T:
        """Run the request's steps. A request that is cancelled is dropped.

        Raises what the steps raise, Overloaded, InferenceFailed, and Unavailable once the engine is stopped.
        """
        if self._is_stopped:
            raise Unavailable("the service is shutting down")
        small = request.rows <= SMALL_ROWS
        line = self._bulk if request.bulk else self._interactive if small else self._large
        with self.admission.admit(request.rows, bulk=request.bulk):
            entry = Entry(request.steps, line, asyncio.get_running_loop().create_future())
            self._open.add(entry)
            try:
                self._advance(entry)
                result: T = await entry.future
                return result
            finally:
                self._open.discard(entry)
                if entry.work is not None:
                    self._count(entry.work.runner, -entry.left)
                entry.steps.close()

    @property
    def stuck(self) -> bool:
        """Whether a batch in a thread has taken longer than any can."""
        now = time.monotonic()
        return any(now - began > STUCK_SECONDS for began in self._started_at.values())

    async def stop(self) -> None:
        """Fail what is not answered with Unavailable, and end the threads unless one is stuck."""
        self._is_stopped = True
        self.health.stop()
        for entry in self._open:
            if not entry.done:
                entry.future.set_exception(Unavailable("the service is shutting down"))
        if self._threads:
            await asyncio.to_thread(self._threads.shutdown, wait=not self.stuck)

    def _advance(self, entry: Entry, error: InferenceFailed | None = None) -> None:
        """Run the entry to its next work, or to its end; with an error, that of its work."""
        if entry.done:
            return
        entry.work = None
        try:
            work = entry.steps.throw(error) if error else next(entry.steps)
        except StopIteration as end:
            entry.future.set_result(end.value)
        except Exception as raised:  # noqa: BLE001  # the caller gets it
            entry.future.set_exception(raised)
        else:
            entry.work = work
            entry.line.put(entry)
            if work is not None:
                self._count(work.runner, len(work.items))
            self._wake()

    def _count(self, runner: Runner[Any], items: int) -> None:
        self._waiting[runner.stage] += items
        self._observer.queue(runner.stage, self._waiting[runner.stage])

    def _wake(self) -> None:
        """Have a step made soon: after the event loop has read what has arrived."""
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._step)

    def _step(self) -> None:
        """Run batches and steps of requests for STEP_SECONDS."""
        self._is_scheduled = False
        until = time.monotonic() + STEP_SECONDS
        while (now := time.monotonic()) < until:
            if not any(self._serve(line, now) for line in self._in_order(now)):
                return
        self._wake()

    def _in_order(self, now: float) -> list[Line]:
        """The lines in which somebody waits, the one to serve first."""
        waiting = [line for line in self._lines if line]
        for line in reversed(waiting):
            if now - line.served_at > line.max_wait:
                waiting.remove(line)
                return [line, *waiting]
        return waiting

    def _serve(self, line: Line, now: float) -> bool:
        """A step of one of the line's requests, or one of its batches; False where nothing can run now."""
        if entry := line.take_paused():
            line.served_at = now
            self._advance(entry)
            return True
        taken = line.take_batch(self._may_run)
        if taken is None:
            return False
        line.served_at = now
        runner, batch = taken
        items = [item_of(entry, i) for entry, i in batch]
        if self._threads and runner.stage == "inference":
            self._free -= 1
            number = id(batch)
            self._started_at[number] = now
            loop = asyncio.get_running_loop()
            running = loop.run_in_executor(self._threads, _outputs, runner, items)
            running.add_done_callback(lambda ended: self._ended(number, runner, batch, ended))
        else:
            self._deliver(runner, batch, _outputs(runner, items))
        return True

    def _may_run(self, runner: Runner[Any]) -> bool:
        return runner.stage == "parse" or not self._threads or self._free > 0

    def _ended(
        self, number: int, runner: Runner[Any], batch: Batch, ended: asyncio.Future[Outcome]
    ) -> None:
        """A thread is free again."""
        self._free += 1
        del self._started_at[number]
        self._deliver(runner, batch, ended.result())
        self._wake()

    def _deliver(self, runner: Runner[Any], batch: Batch, outcome: Outcome) -> None:
        """Give every entry its outputs, and run those on that have all of theirs."""
        outputs, seconds, processor_seconds = outcome
        is_good = not any(isinstance(output, InferenceFailed) for output in outputs)
        if is_good:
            self.health.succeeded(runner)
            if runner.is_counted:
                items = [item_of(entry, i) for entry, i in batch]
                tokens, padding = runner.shape(items)
                self._observer.batch(runner.name, len(items), tokens, padding, processor_seconds)
        else:
            self.health.failed(runner)
        served: dict[Entry, InferenceFailed | None] = {}
        delivered = 0
        for (entry, i), output in zip(batch, outputs, strict=True):
            if entry.done or entry.work is None:
                continue
            entry.work.outputs[i] = output
            entry.left -= 1
            delivered += 1
            failed = output if isinstance(output, InferenceFailed) else None
            served[entry] = served.get(entry) or failed
        self._count(runner, -delivered)
        for entry, failed in served.items():
            assert entry.work is not None, "it has waited for this batch"
            entry.work.seconds += seconds
            if failed:
                self._count(runner, -entry.left)
                self._advance(entry, failed)
            elif not entry.left:
                self._advance(entry)


def _outputs(runner: Runner[Any], items: Sequence[Any]) -> Outcome:
    """Run a batch. Where it fails, its items run alone, so that a bad one fails alone."""
    began, processor_began = time.monotonic(), time.thread_time()
    outputs: list[Any]
    try:
        outputs = list(runner.run(runner.prepare(items)))
    except Exception:  # whatever a graph raises, the callers need an answer
        log.exception("%s failed on %d items", runner.name, len(items))
        single = len(items) == 1
        outputs = [failure(runner)] if single else [_outputs(runner, [i])[0][0] for i in items]
    return outputs, time.monotonic() - began, time.thread_time() - processor_began

"""A pool of parse processes that survives their death.

concurrent.futures.ProcessPoolExecutor breaks when one of its processes dies: every pending future
fails, and it takes no more work. Here each process has a thread in the parent, which takes waiting
jobs, sends them down a pipe and delivers the answers to the event loop. When a process dies, the
others go on, and the thread starts a new one after a backoff (0.5 s, 1 s, 2 s .. 30 s) that resets
when a process has answered. Jobs in flight are parsed once more, each alone, so that a text that kills
its process takes no other with it; the second time it fails with Unavailable. After FAILURES in a row
without an answer a place counts as down, but is still retried. A pool whose places are all down
refuses work.
"""

import asyncio
import logging
import math
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from heedful.runtime.calls import Call, FairQueue, Ticket
from heedful.runtime.errors import InferenceFailed, StartupError, Unavailable
from heedful.runtime.observer import Observer
from heedful.runtime.parse_process import ParseProcess, ProcessDiedError, Ready
from heedful.text.parse import Parse, ParseJob

log = logging.getLogger(__name__)

GROUP = 64
"""Most short texts per job list: a sentence costs 615, 557, 532 and 537 µs in lists of 16, 32, 64 and 1,024."""
CHARACTERS = 200
"""A text counts once more for each so many characters."""
HEARTBEAT_SECONDS = 0.5
"""How often an idle process is checked for life."""
FIRST_BACKOFF_SECONDS, LAST_BACKOFF_SECONDS = 0.5, 30.0
FAILURES = 5
DIED = "two parse processes died during the request"
NONE_UP = "no parse process comes up"
SHUTTING_DOWN = "the service is shutting down"

State = Literal["starting", "ready", "down"]


class _DiedError(Unavailable):
    """A process died while it parsed one of the call's jobs."""


@dataclass(frozen=True, slots=True)
class _ParseItem:
    job: ParseJob
    alone: bool  # whether it must be the only job of its list

    @property
    def cost(self) -> float:
        return math.inf if self.alone else 1 + len(self.job.text) // CHARACTERS


class ParsePool:
    """`workers` parse processes with one queue. For the event loop's thread only."""

    def __init__(
        self, pipeline: str | Path, workers: int, observer: Observer | None = None
    ) -> None:
        self.wanted = workers
        self._parser: Ready | None = None
        self._pipeline = str(pipeline)
        self._observer = observer or Observer()
        self._loop: asyncio.AbstractEventLoop
        self._starts: list[asyncio.Task[ParseProcess]] = []
        self._threads: list[threading.Thread] = []
        self._changed = threading.Condition()  # guards all of the following
        self._queue: FairQueue[_ParseItem, Parse] = FairQueue()
        self._processes: dict[int, ParseProcess] = {}  # by place
        self._states: list[State] = ["starting"] * workers
        self._idle = 0
        self._stopping = False

    @property
    def alive(self) -> int:
        """Processes that are ready to parse."""
        with self._changed:
            return sum(
                self._states[place] == "ready" and process.alive()
                for place, process in self._processes.items()
            )

    @property
    def down(self) -> bool:
        """Whether every place has failed FAILURES times in a row."""
        with self._changed:
            return set(self._states) == {"down"}

    @property
    def waiting(self) -> int:
        """Jobs that no process has taken yet."""
        with self._changed:
            return len(self._queue)

    @property
    def pids(self) -> list[int]:
        with self._changed:
            return [process.pid for process in self._processes.values()]

    async def start(self) -> Ready:
        """Start every process, and return their common parser. Raises StartupError."""
        self._loop = asyncio.get_running_loop()
        self._starts = [
            asyncio.create_task(asyncio.to_thread(self._start, place))
            for place in range(self.wanted)
        ]
        try:
            done, _ = await asyncio.wait(self._starts, return_when=asyncio.FIRST_EXCEPTION)
            for start in done:
                start.result()
        except BaseException:
            await self.stop()
            raise
        for place, process in self._processes.items():
            # A daemon thread does not keep a program alive that ends without stop().
            thread = threading.Thread(target=self._run_place, args=(place, process), daemon=True)
            self._threads.append(thread)
            thread.start()
        assert self._parser is not None, "each process that started has set it"
        return self._parser

    async def stop(self) -> None:
        """End every process. Jobs that wait or are in flight fail with Unavailable."""
        with self._changed:
            self._stopping = True
            for process in self._processes.values():
                process.kill()
            waiting = self._queue.drain()
            self._changed.notify_all()
        _fail(waiting, Unavailable, SHUTTING_DOWN)
        await asyncio.gather(*self._starts, return_exceptions=True)  # killed, where not up yet
        await asyncio.to_thread(self._join)

    async def parse(self, jobs: Sequence[ParseJob]) -> list[Parse]:
        """One parse per job, in order. A cancelled call's jobs are dropped unless already sent.

        Raises Unavailable if a job killed two processes or none can be started, InferenceFailed if
        the parser failed on a job.
        """
        for alone in (False, True):
            with suppress(_DiedError):
                return await self._ask([_ParseItem(job, alone) for job in jobs])
        raise Unavailable(DIED)

    async def _ask(self, items: Sequence[_ParseItem]) -> list[Parse]:
        call: Call[_ParseItem, Parse] = Call(items, asyncio.get_running_loop())
        with self._changed:
            if self._stopping:
                raise Unavailable(SHUTTING_DOWN)
            if set(self._states) == {"down"}:
                raise Unavailable(NONE_UP)
            self._queue.put(call)
            self._observer.queue("parse", len(self._queue))
            self._changed.notify(len(items))
        try:
            return await call.done
        finally:
            with self._changed:
                self._queue.discard(call)
            self._observer.queue("parse", self.waiting)

    def _deliver(
        self, tickets: list[Ticket[_ParseItem, Parse]], parses: list[Parse | None]
    ) -> None:
        for ticket, parse in zip(tickets, parses, strict=True):
            if parse is None:
                ticket.call.fail(InferenceFailed("the parser failed on one of the texts"))
            else:
                ticket.call.put(ticket.row, parse)
        self._observer.queue("parse", self.waiting)

    # What follows runs in threads, one per place.

    def _start(self, place: int) -> ParseProcess:
        """Start the place's process and wait until it is ready. Raises StartupError."""
        process = ParseProcess(self._pipeline)
        with self._changed:
            self._processes[place] = process  # from here on stop() ends it
            if self._stopping:
                process.kill()
        try:
            parser = process.ready()
            with self._changed:
                self._parser = self._parser or parser
                if parser != self._parser:
                    raise StartupError("the parser on disk is not the one that was started with")
                self._set_state(place, "ready")
        except StartupError:
            self._end(place)
            raise
        return process

    def _run_place(self, place: int, process: ParseProcess | None) -> None:
        """Serve with the place's process, and start another whenever it dies."""
        failures = 0
        while not self._stopping:
            if process:
                failures = 0 if self._serve(process) else failures
                self._end(place)
                process = None
            failures += 1
            with self._changed:
                self._set_state(place, "down" if failures >= FAILURES else "starting")
                self._changed.wait_for(lambda: self._stopping, _backoff(failures))
            try:
                process = None if self._stopping else self._start(place)
            except StartupError as error:
                log.error("no parse process in place %d: %s", place, error)

    def _serve(self, process: ParseProcess) -> bool:
        """Serve until the process dies or the pool stops; return whether it ever answered."""
        answered = False
        while tickets := self._take(process):
            try:
                parses = process.parse([ticket.item.job for ticket in tickets])
            except ProcessDiedError as died:
                if not self._stopping:
                    log.error("a parse process died with %d jobs in flight: %s", len(tickets), died)
                self._tell(_fail, {ticket.call for ticket in tickets}, _DiedError, DIED)
                break
            answered = True
            self._tell(self._deliver, tickets, parses)
        else:
            if not self._stopping:
                log.error("a parse process died while it had nothing to do")
        return answered

    def _take(self, process: ParseProcess) -> list[Ticket[_ParseItem, Parse]]:
        """Wait for jobs and take this process's share; none when the process or the pool has ended."""
        with self._changed:
            tickets: list[Ticket[_ParseItem, Parse]] = []
            while not tickets:  # the waiting jobs may all be cancelled
                self._idle += 1
                while not self._stopping and process.alive() and not len(self._queue):
                    self._changed.wait(HEARTBEAT_SECONDS)
                share = math.ceil(len(self._queue) / self._idle)
                self._idle -= 1
                if self._stopping or not process.alive():
                    break
                tickets = self._queue.take(min(GROUP, share), lambda item: item.cost)
            return tickets

    def _end(self, place: int) -> None:
        with self._changed:
            process = self._processes.pop(place)
        process.close()

    def _join(self) -> None:
        for thread in self._threads:
            thread.join()
        for place in list(self._processes):
            self._end(place)

    def _set_state(self, place: int, state: State) -> None:
        """With the lock held."""
        self._states[place] = state
        for known in get_args(State):
            self._tell(self._observer.worker, "parse", known, self._states.count(known))
        if set(self._states) == {"down"}:
            self._tell(_fail, self._queue.drain(), Unavailable, NONE_UP)

    def _tell(self, function: Callable[..., None], *arguments: object) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            self._loop.call_soon_threadsafe(function, *arguments)


def _backoff(failures: int) -> float:
    return min(FIRST_BACKOFF_SECONDS * 2.0 ** (failures - 1), LAST_BACKOFF_SECONDS)


def _fail(calls: Iterable[Call[_ParseItem, Parse]], error: type[Unavailable], why: str) -> None:
    for call in calls:
        call.fail(error(why))

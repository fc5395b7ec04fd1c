"""Sentences of many requests -> batches -> vectors.

A free session thread takes everything that waits, or its share if several are free, up to WINDOW
batches' worth, one sentence from each request in turn. Small calls are dispatched once a round of the event loop
brings no more of them, and a millisecond after the dispatch before. A short call that comes alone is encoded on the
event loop: a hand-over to a thread and back takes 0.2 ms. So are several where the thread has no core to itself. If the
caller says that its request is the only one, it passes no queue either.
Equal sentences are encoded once; the others are grouped by model and length into the cheapest batches
under a cost budget (runtime.engine.batch_plan).

When a batch fails, one token is tried, now and every RETRY_SECONDS: that distinguishes a bad input from a broken
session, and a fault that passes from one that stays.
"""

import asyncio
import logging
import math
import sys
import time
from collections.abc import Coroutine, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from heedful.runtime.engine.answered import Answered, fail
from heedful.runtime.engine.batch_plan import (
    WINDOW,
    EncodeItem,
    Pace,
    PlannedBatch,
    Vectors,
    plan,
)
from heedful.runtime.engine.cache import Cache
from heedful.runtime.engine.calls import Call, FairQueue, Ticket
from heedful.runtime.engine.encoder_session import EncoderSession
from heedful.runtime.engine.graphs import encoder_feeds
from heedful.runtime.engine.phases import Phases
from heedful.runtime.engine.session import SessionThreads
from heedful.runtime.engine.steps import Encoded
from heedful.runtime.engine.turns import Once, gathering, in_turn
from heedful.runtime.errors import InferenceFailed, Unavailable
from heedful.runtime.observer import Observer
from heedful.text.batch import Sentence, collate
from heedful.text.vocab import UNKNOWN

log = logging.getLogger(__name__)

Key = tuple[str, float | None, bytes]  # a bundle's version and alpha, and a sentence's key

QUICK_SECONDS = 0.01
"""What batches may take on the event loop: a slice of the parse takes half as long there."""
GATHERED = 64
"""Sentences that are dispatched even though more come in each round of the event loop."""
GAP_SECONDS = 0.001
"""Between two dispatches of fewer sentences: one costs as much as several sentences do."""
FAILURES = 5
"""A session that fails so often in a row, on any input, needs a new process."""
RETRY_SECONDS = 1.0
"""Between two tries of a session that fails."""
FLUSH_INTERVAL = 0.005
"""Seconds after which finished batches of small calls are delivered before the rest of their window."""


class Scheduler:
    """Batches every model's sentences, one batch at a time per session thread.

    `small` runs the batches of small calls, of which one dispatch more is taken while all `threads` are at large
    ones. For the event loop's thread only.
    """

    def __init__(
        self,
        threads: SessionThreads,
        small: SessionThreads,
        observer: Observer,
        phases: Phases,
        cache_items: int = 0,
    ) -> None:
        self._threads, self._small, self._phases = threads, small, phases
        self._free, self._small_free = threads.size, True
        self._observer = observer
        self._cache: Cache[Key, Vectors] = Cache("vector", cache_items, _weigh, observer)
        self._queue: FairQueue[EncodeItem, Vectors] = FairQueue()
        self._pace = Pace()
        self._open: set[Call[EncodeItem, Vectors]] = set()
        self._started = False
        self._dispatch_soon = Once(
            self._dispatch, gathering(self._queue.__len__, GATHERED, GAP_SECONDS)
        )
        self._dispatch_in_turn = Once(self._dispatch_gathered, in_turn)
        self._serving: set[asyncio.Task[None]] = set()
        self.failures: MutableMapping[EncoderSession, int] = WeakKeyDictionary()
        """How often in a row a session failed even on one token. Those that a reload replaces go with their models."""
        self._retried: set[EncoderSession] = set()

    def start(self) -> None:
        self._started = True

    async def stop(self) -> None:
        """Refuse new calls; unfinished ones fail with Unavailable."""
        self._started = False
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        for call in self._open:
            call.fail(Unavailable("the service is shutting down"))

    async def encode(
        self,
        encoder: EncoderSession,
        sentences: Sequence[Sentence],
        *,
        bulk: bool = False,
        alone: bool = False,
    ) -> Encoded:
        """The sentences' vectors, in order, not normalised.

        Those of `bulk` wait while others do; a call that comes `alone` waits for no others. A cancelled call's
        sentences are dropped unless their batch is running. Raises InferenceFailed if a batch with one of them
        failed, Unavailable when stopped.
        """
        if not self._started:
            raise Unavailable("the service is shutting down")
        started = time.perf_counter()
        if self._cache.off:
            vectors, inference = await self._run(encoder, sentences, bulk, alone)
            waited = time.perf_counter() - started - inference
            rows = vectors[0][None] if len(vectors) == 1 else np.array(vectors)
            return Encoded(rows, max(waited, 0.0), inference)
        inference = 0.0

        async def make(rows: list[int]) -> list[Vectors]:
            nonlocal inference
            wanted = [sentences[row] for row in rows]
            made, seconds = await self._run(encoder, wanted, bulk, alone)
            inference += seconds
            return [vector.copy() for vector in made]  # each would keep its whole batch alive

        card = encoder.card
        keys = [(card.version, card.alpha, sentence.key) for sentence in sentences]
        vectors = await self._cache.get(keys, make)
        waited = time.perf_counter() - started - inference
        return Encoded(np.array(vectors), max(waited, 0.0), inference)

    async def _run(
        self, encoder: EncoderSession, sentences: Sequence[Sentence], bulk: bool, alone: bool
    ) -> tuple[list[Vectors], float]:
        """Their vectors (views of their batches), and the seconds that the batches took."""
        call: Call[EncodeItem, Vectors] = Call(
            [EncodeItem(encoder, sentence) for sentence in sentences],
            asyncio.get_running_loop(),
            bulk=bulk,
        )
        tickets = [Ticket(call, row) for row in range(len(sentences))] if alone else []
        if tickets and self._is_quick(tickets):
            self._encode_on_loop(tickets)
            if call.finished:  # else the event loop is about to deliver a part of it
                return call.done.result(), call.seconds
        else:
            self._queue.put(call)
            self._observer.queue("inference", len(self._queue))
            self._wake()
            if call.small:
                self._dispatch_small()  # now: the next round of the event loop may be long
        self._open.add(call)
        try:
            return await call.done, call.seconds
        finally:
            self._open.discard(call)
            self._queue.discard(call)
            self._observer.queue("inference", len(self._queue))

    def _wake(self) -> None:
        """Dispatch once a round of the event loop brings no more sentences; large calls alone wait for a turn."""
        if not self._free:
            return
        if self._queue.has_small:
            self._dispatch_soon()
        else:
            self._dispatch_in_turn()

    def _dispatch_gathered(self) -> None:
        """Dispatch, unless more sentences are about to come."""
        if self._free and self._phases.gathers(len(self._queue)):
            self._dispatch_in_turn()
        else:
            self._dispatch()

    def _dispatch(self) -> None:
        """Give each free thread its share of the waiting sentences."""
        while self._started and self._free:
            fair = math.ceil(len(self._queue) / self._free)
            # A sentence that comes now waits for one batch of bulk at most.
            budget = 1 / WINDOW if self._queue.only_bulk else 1.0
            small = self._queue.small_turn() or None
            tickets = self._queue.take(budget, lambda item: item.share, fair, small=small)
            if not tickets:
                break
            self._observer.queue("inference", len(self._queue))
            if self._is_quick(tickets):
                self._encode_on_loop(tickets)
                continue
            large = any(not ticket.call.small for ticket in tickets)
            self._free -= 1
            self._phases.encoding += large
            serving = self._spawn(self._serve_all(tickets))
            serving.add_done_callback(partial(self._served, large))
        self._dispatch_small()

    def _is_quick(self, tickets: Sequence[Ticket[EncodeItem, Vectors]]) -> bool:
        """Whether they take little time and nothing else is under way: handing them to a thread would cost more.

        Sentences of several calls stay here only where a thread has no core to itself.
        """
        if self._serving or self._queue:
            return False
        call = tickets[0].call
        costs: dict[EncoderSession, int] = {}
        for ticket in tickets:
            encoder = ticket.item.encoder
            if ticket.call is not call and not self._phases.one_core:
                return False
            costs[encoder] = costs.get(encoder, 0) + ticket.item.cost
        seconds = sum(self._pace.seconds(encoder, cost) for encoder, cost in costs.items())
        return seconds < QUICK_SECONDS

    def _encode_on_loop(self, tickets: list[Ticket[EncodeItem, Vectors]]) -> None:
        """On the event loop."""
        with Answered([tickets]):
            loop = asyncio.get_running_loop()
            self._deliver(self._encode(plan(tickets), self._threads, loop))

    def _dispatch_small(self) -> None:
        """Give the thread for small calls what waits of them, while all others are at large ones."""
        if not (self._started and self._small_free and self._phases.encoding == self._threads.size):
            return
        if tickets := self._queue.take(1.0, lambda item: item.share, small=True):
            self._observer.queue("inference", len(self._queue))
            self._small_free = False
            serving = self._spawn(self._serve_all(tickets))
            serving.add_done_callback(self._small_served)

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(coroutine)
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        return task

    def _served(self, large: bool, _: asyncio.Task[None]) -> None:
        self._free += 1
        self._phases.encoding -= large
        self._dispatch()
        self._phases.resume()

    def _small_served(self, _: asyncio.Task[None]) -> None:
        self._small_free = True
        self._dispatch()

    async def _serve_all(self, tickets: list[Ticket[EncodeItem, Vectors]]) -> None:
        """Encode the batches of small calls first, and deliver them; then the others.

        All of a kind in one thread call: a hand-over costs as much as a sentence, and takes the core from what is
        being parsed.
        """
        loop = asyncio.get_running_loop()
        with Answered([tickets]):
            planned = plan(tickets)
            for small, threads in ((True, self._small), (False, self._threads)):
                if of_kind := [batch for batch in planned if batch.small == small]:
                    self._deliver(await threads.call(self._encode, of_kind, threads, loop))

    def _encode(
        self,
        planned: Sequence[PlannedBatch],
        threads: SessionThreads,
        loop: asyncio.AbstractEventLoop,
    ) -> list["_Ran"]:
        """In a thread: run the batches. Deliver small calls' every FLUSH_INTERVAL; return the remaining ones."""
        done: list[_Ran] = []
        due = time.monotonic() + FLUSH_INTERVAL
        for waiting in planned:
            one = waiting.unanswered()
            if one is None:
                continue
            if one.small and time.monotonic() > due:
                loop.call_soon_threadsafe(self._deliver, done)
                done, due = [], time.monotonic() + FLUSH_INTERVAL
            vectors, seconds = None, 0.0
            feeds = encoder_feeds(one.encoder.card, one.batch)
            before = time.thread_time()
            with suppress(InferenceFailed):  # which is logged
                vectors, seconds = threads.timed(one.encoder.session, feeds)
            done.append(_Ran(one, vectors, seconds, time.thread_time() - before))
        return done

    def _deliver(self, done: list["_Ran"]) -> None:
        """Answer the sentences of each batch."""
        for ran in done:
            with Answered(ran.planned.groups):
                self._give(ran)

    def _give(self, ran: "_Ran") -> None:
        """One vector for each group of equal sentences."""
        encoder, groups, batch = ran.planned.encoder, ran.planned.groups, ran.planned.batch
        if ran.vectors is None:
            fail(groups)
            self._spawn(self._check(encoder))
            return
        if self.failures:
            self.failures.pop(encoder, None)
        if len(groups) == 1:
            self._pace.measured(encoder, groups[0][0].item.cost, ran.seconds)
        for call in {ticket.call for group in groups for ticket in group}:
            call.seconds += ran.seconds
        finite: npt.NDArray[np.bool_] = np.logical_and.reduce(np.isfinite(ran.vectors), axis=1)
        for group, vector, usable in zip(groups, ran.vectors, finite, strict=True):
            for ticket in group:
                if usable:
                    ticket.call.put(ticket.row, vector)
                else:
                    ticket.call.fail(InferenceFailed("the model gave NaN or infinity"))
        tokens = int(batch.lengths.sum())
        self._observer.batch(
            encoder.card.name, len(groups), tokens, batch.padding, ran.processor_seconds
        )

    async def _check(self, encoder: EncoderSession) -> None:
        """Probe, and while that fails, again until it succeeds or has failed FAILURES times.

        A process that is not ready gets no requests, by which it could find that the fault has passed.
        """
        await self._probe(encoder)
        if encoder in self._retried:
            return
        self._retried.add(encoder)
        try:
            while 0 < self.failures.get(encoder, 0) < FAILURES:
                await asyncio.sleep(RETRY_SECONDS)
                await self._probe(encoder)
        finally:
            self._retried.discard(encoder)

    async def _probe(self, encoder: EncoderSession) -> None:
        """Run one token, and count a failure."""
        one = collate([Sentence(np.array([UNKNOWN]), np.array([0]))])
        try:
            await self._threads.run(encoder.session, encoder_feeds(encoder.card, one))
        except InferenceFailed:
            self.failures[encoder] = self.failures.get(encoder, 0) + 1
        else:
            self.failures.pop(encoder, None)


@dataclass(frozen=True, slots=True)
class _Ran:
    """A batch that a session has run."""

    planned: PlannedBatch
    vectors: Vectors | None  # None where the session failed
    seconds: float
    processor_seconds: float  # of the thread


def _weigh(key: Key, vector: Vectors) -> int:
    """Bytes, including Python's objects."""
    return sys.getsizeof(key) + sys.getsizeof(key[-1]) + sys.getsizeof(vector)

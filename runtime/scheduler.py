"""Sentences of many requests -> batches -> vectors.

When a session thread is free everything that waits is taken at once (no timer adds latency to an
idle server), or its share where several are free, up to WINDOW batches' worth, a sentence from each
request in turn. Equal sentences are encoded once. The rest is grouped by model and by length, as it
costs least, under a budget of what a batch costs.

When a batch fails one token is tried: it tells an input that the model cannot take from a session
that does not run any more.
"""

import asyncio
import logging
import math
import sys
import time
from collections.abc import Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from heedful.runtime.cache import Cache
from heedful.runtime.calls import Call, FairQueue, Ticket
from heedful.runtime.card import Card
from heedful.runtime.errors import InferenceFailed, Unavailable
from heedful.runtime.graphs import encoder_feeds
from heedful.runtime.observer import Observer
from heedful.runtime.session import CUDA, Session, SessionThreads
from heedful.text.batch import Batch, Sentence, cheapest, collate
from heedful.text.vocab import UNKNOWN

log = logging.getLogger(__name__)

Vectors = npt.NDArray[np.float32]
Group = list[Ticket["EncodeItem", Vectors]]  # tickets of equal sentences
Key = tuple[str, float | None, bytes]  # a bundle's version and alpha, and a sentence's key

BUDGET, CUDA_BUDGET = 512, 16384
"""What a batch may cost, in tokens of a linear encoder."""
OVERHEAD = 1 / 32
"""What it takes to begin a batch, of its budget: 230 µs where a token takes 12 to 20 (int8, one core)."""
WINDOW = 4
"""Batches planned at once: more means less padding, fewer lets new requests in sooner."""
FLUSH_INTERVAL = 0.005
"""Seconds after which a batch that is done waits for no other of its window."""
QUADRATIC_FROM = 16
"""Tokens up to which a quadratic encoder costs no more than a linear one."""


@dataclass(frozen=True, slots=True, eq=False)
class EncoderSession:
    """A model's encoder graph."""

    card: Card
    session: Session[Vectors]

    @property
    def budget(self) -> int:
        """What a batch may cost."""
        return CUDA_BUDGET if self.session.provider == CUDA else BUDGET

    @property
    def overhead(self) -> int:
        """What a batch costs before its first sentence."""
        return round(OVERHEAD * self.budget)

    def cost(self, length: int) -> int:
        """What a sentence of so many ids adds to a batch in which it is the longest."""
        if self.card.cost == "linear":
            return length
        return max(length, math.ceil(length * length / QUADRATIC_FROM))


@dataclass(frozen=True, slots=True, eq=False)
class EncodeItem:
    encoder: EncoderSession
    sentence: Sentence

    @property
    def cost(self) -> int:
        # Ids may be pieces: the transformer's part is the dear one.
        return self.encoder.cost(len(self.sentence.ids))

    @property
    def share(self) -> float:
        """Of a window that holds nothing but sentences of its length."""
        return 1 / (WINDOW * max(1, self.encoder.budget // self.cost))


@dataclass(frozen=True, slots=True)
class Encoded:
    vectors: Vectors  # (N, D)
    queue: float  # seconds spent waiting
    inference: float  # seconds spent in the session, by the batches that held the sentences


class Scheduler:
    """Batches every model's sentences, for as many batches at a time as there are session threads.

    For the event loop's thread.
    """

    def __init__(self, threads: SessionThreads, observer: Observer, cache_items: int = 0) -> None:
        self._threads = threads
        self._free = threads.size
        self._observer = observer
        self._cache: Cache[Key, Vectors] = Cache("vector", cache_items, _weigh, observer)
        self._queue: FairQueue[EncodeItem, Vectors] = FairQueue()
        self._open: set[Call[EncodeItem, Vectors]] = set()
        self._started = self._waking = False
        self._serving: set[asyncio.Task[None]] = set()
        self.failures: dict[str, int] = {}
        """By model: how often in a row its session did not even run one token."""

    def start(self) -> None:
        self._started = True

    async def stop(self) -> None:
        """Take no more; what is not done fails with Unavailable."""
        self._started = False
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        for call in self._open:
            call.fail(Unavailable("the service is shutting down"))

    async def encode(self, encoder: EncoderSession, sentences: Sequence[Sentence]) -> Encoded:
        """Vectors of the sentences, in order, not normalised.

        A cancelled call's sentences are dropped unless their batch runs already. Raises
        InferenceFailed where a batch that held one of them failed, Unavailable when stopped.
        """
        if not self._started:
            raise Unavailable("the service is shutting down")
        started = time.perf_counter()
        inference = 0.0

        async def make(rows: list[int]) -> list[Vectors]:
            nonlocal inference
            made, seconds = await self._run(encoder, [sentences[row] for row in rows])
            inference += seconds
            return [vector.copy() for vector in made]  # each would keep its whole batch alive

        card = encoder.card
        keys = [(card.version, card.alpha, sentence.key) for sentence in sentences]
        vectors = await self._cache.get(keys, make)
        waited = time.perf_counter() - started - inference
        return Encoded(np.array(vectors), max(waited, 0.0), inference)

    async def _run(
        self, encoder: EncoderSession, sentences: Sequence[Sentence]
    ) -> tuple[list[Vectors], float]:
        """Their vectors, rows of the batches that held them, and the seconds those took."""
        call: Call[EncodeItem, Vectors] = Call(
            [EncodeItem(encoder, sentence) for sentence in sentences], asyncio.get_running_loop()
        )
        self._open.add(call)
        self._queue.put(call)
        self._observer.queue("inference", len(self._queue))
        self._wake()
        try:
            return await call.done, call.seconds
        finally:
            self._open.discard(call)
            self._queue.discard(call)
            self._observer.queue("inference", len(self._queue))

    def _wake(self) -> None:
        """Dispatch, when those who came at the same time have put their sentences too."""
        if self._free and not self._waking:
            self._waking = True
            asyncio.get_running_loop().call_soon(self._dispatch)

    def _dispatch(self) -> None:
        """Give each free thread its share of what waits."""
        self._waking = False
        while self._started and self._free:
            fair = math.ceil(len(self._queue) / self._free)
            tickets = self._queue.take(1.0, lambda item: item.share, fair)
            if not tickets:
                break
            self._observer.queue("inference", len(self._queue))
            self._free -= 1
            self._spawn(self._serve_all(tickets)).add_done_callback(self._served)

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(coroutine)
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        return task

    def _served(self, _: asyncio.Task[None]) -> None:
        self._free += 1
        self._dispatch()

    async def _serve_all(self, tickets: list[Ticket[EncodeItem, Vectors]]) -> None:
        """Encode what was taken, in one go: to hand each batch to the thread costs as much as a sentence."""
        try:
            planned = [
                (encoder, [groups[i] for i in batch])
                for encoder, groups in _by_encoder(tickets).items()
                for batch in cheapest(
                    [group[0].item.cost for group in groups], encoder.budget, encoder.overhead
                )
            ]
            loop = asyncio.get_running_loop()
            self._deliver(await self._threads.call(self._encode, planned, loop))
        except Exception:
            # A fault of ours. If the loop ended here, every caller would wait for ever.
            log.exception("a dispatch of %d sentences failed", len(tickets))
            _fail(tickets)

    def _encode(
        self, planned: list[tuple[EncoderSession, list[Group]]], loop: asyncio.AbstractEventLoop
    ) -> list["_Ran"]:
        """In a thread: run the batches, and deliver all FLUSH_INTERVAL seconds what is done; the rest is returned."""
        done: list[_Ran] = []
        due = time.monotonic() + FLUSH_INTERVAL
        for encoder, taken in planned:
            wanted = [[ticket for ticket in group if not ticket.call.finished] for group in taken]
            groups = [group for group in wanted if group]
            if not groups:
                continue
            if time.monotonic() > due:
                loop.call_soon_threadsafe(self._deliver, done)
                done, due = [], time.monotonic() + FLUSH_INTERVAL
            batch = collate([group[0].item.sentence for group in groups])
            vectors, seconds = None, 0.0
            with suppress(InferenceFailed):  # which is logged
                feeds = encoder_feeds(encoder.card, batch)
                vectors, seconds = self._threads.timed(encoder.session, feeds)
            done.append(_Ran(encoder, groups, batch, vectors, seconds))
        return done

    def _deliver(self, done: list["_Ran"]) -> None:
        """Give the sentences of each batch what came of it."""
        for ran in done:
            try:
                self._give(ran)
            except Exception:
                # A fault of ours, or of the graph. If it ended here, callers would wait for ever.
                log.exception("a batch of %d sentences is lost", len(ran.groups))
                _fail(ticket for group in ran.groups for ticket in group)

    def _give(self, ran: "_Ran") -> None:
        """A row for each group of equal sentences."""
        name = ran.encoder.card.name
        if ran.vectors is None:
            _fail(ticket for group in ran.groups for ticket in group)
            self._spawn(self._probe(ran.encoder))
            return
        self.failures.pop(name, None)
        for call in {ticket.call for group in ran.groups for ticket in group}:
            call.seconds += ran.seconds
        finite: npt.NDArray[np.bool_] = np.logical_and.reduce(np.isfinite(ran.vectors), axis=1)
        for group, vector, usable in zip(ran.groups, ran.vectors, finite, strict=True):
            for ticket in group:
                if usable:
                    ticket.call.put(ticket.row, vector)
                else:
                    ticket.call.fail(InferenceFailed("the model gave NaN or infinity"))
        tokens = int(ran.batch.lengths.sum())
        self._observer.batch(name, len(ran.groups), tokens, ran.batch.padding)

    async def _probe(self, encoder: EncoderSession) -> None:
        """Run one token, and count where that fails too."""
        name = encoder.card.name
        one = collate([Sentence(np.array([UNKNOWN]), np.array([0]))])
        try:
            await self._threads.run(encoder.session, encoder_feeds(encoder.card, one))
        except InferenceFailed:
            self.failures[name] = self.failures.get(name, 0) + 1
        else:
            self.failures.pop(name, None)


@dataclass(frozen=True, slots=True)
class _Ran:
    """A batch that a session has run."""

    encoder: EncoderSession
    groups: list[Group]
    batch: Batch
    vectors: Vectors | None  # None where the session failed
    seconds: float


def _fail(tickets: Iterable[Ticket[EncodeItem, Vectors]]) -> None:
    for ticket in tickets:
        ticket.call.fail(InferenceFailed("the model failed on this input"))


def _by_encoder(tickets: list[Ticket[EncodeItem, Vectors]]) -> dict[EncoderSession, list[Group]]:
    """For each encoder its tickets, those of equal sentences together."""
    groups: dict[EncoderSession, dict[bytes, Group]] = {}
    for ticket in tickets:
        of_encoder = groups.setdefault(ticket.item.encoder, {})
        of_encoder.setdefault(ticket.item.sentence.key, []).append(ticket)
    return {encoder: list(equal.values()) for encoder, equal in groups.items()}


def _weigh(key: Key, vector: Vectors) -> int:
    """Bytes, with what Python's objects need."""
    return sys.getsizeof(key) + sys.getsizeof(key[-1]) + sys.getsizeof(vector)

"""A model's answers without an event loop: the steps of `runtime.inference`, each done at once by the caller.

The texts of a call are planned into the same batches as the service plans those of one request, so that
its answers are the service's bit for bit.
"""

import sys
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from heedful.runtime.engine.admission import Admission
from heedful.runtime.engine.batch_plan import Vectors
from heedful.runtime.engine.encoder_session import EncoderSession
from heedful.runtime.engine.graphs import encoder_feeds
from heedful.runtime.engine.session import Session, SessionThreads
from heedful.runtime.engine.steps import Encoded
from heedful.runtime.errors import InferenceFailed, Unavailable
from heedful.runtime.forks import renew_in_children
from heedful.runtime.inference import Engine
from heedful.text.batch import Sentence, cheapest, collate
from heedful.text.parse import Parse, ParseJob, Parser

T = TypeVar("T")


def finish(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never waits, as those over a `direct_engine` do not."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    coroutine.close()
    raise RuntimeError("it waits for an event loop")


class DirectThreads(SessionThreads):
    """Runs a session in the thread that asks. Its own threads are for the batches of one call."""

    def __init__(self, size: int = 1) -> None:
        super().__init__(size)
        renew_in_children(self)

    def renew(self) -> None:
        """See `runtime.forks`."""
        self._executor = ThreadPoolExecutor(self.size, "session")

    async def call(self, function: Callable[..., T], *arguments: Any) -> T:
        if self._stopped:
            raise Unavailable("the model is closed: load it again")
        return function(*arguments)

    def each(self, function: Callable[[Any], T], items: Iterable[Any]) -> list[T]:
        """The function's results, in order, of as many items at once as there are threads."""
        items = list(items)
        if len(items) < 2 or self.size < 2:
            return [function(item) for item in items]
        return list(self._executor.map(function, items))

    async def run_all(
        self, runs: Iterable[tuple[Session[T], Mapping[str, npt.NDArray[Any]]]]
    ) -> list[tuple[T, float]]:
        """See `SessionThreads.run_all`."""
        return await self.call(self.each, lambda run: self.timed(*run), runs)

    def close(self) -> None:
        """Refuse new runs. Those that have begun end."""
        self._stopped = True
        self._executor.shutdown(wait=False)


class DirectParses:
    """The parser, which takes one call at a time and runs in the threads of the sessions."""

    def __init__(self, parser: Parser, threads: DirectThreads) -> None:
        self._parser = parser
        self._threads = threads
        self._lock = threading.Lock()
        renew_in_children(self)

    def renew(self) -> None:
        """See `runtime.forks`."""
        self._lock = threading.Lock()

    async def get(self, jobs: Sequence[ParseJob], **_: bool) -> list[Parse]:
        with self._lock:
            return await self._threads.call(self._parser.parse, jobs, self._threads.each)

    async def pause(self) -> None:
        """Nobody waits."""


class DirectScheduler:
    """Plans one call's sentences into batches, at most `max_sentences` in each, and runs them."""

    def __init__(self, threads: DirectThreads, max_sentences: int | None = None) -> None:
        self._threads = threads
        self._max_sentences = max_sentences or sys.maxsize

    async def encode(
        self, encoder: EncoderSession, sentences: Sequence[Sentence], **_: bool
    ) -> Encoded:
        """The sentences' vectors (N, D), in order. Raises InferenceFailed."""
        by_key = {sentence.key: sentence for sentence in sentences}
        rows = {key: row for row, key in enumerate(by_key)}
        distinct = list(by_key.values())
        vectors: Vectors = np.empty((len(distinct), encoder.card.width), np.float32)
        costs = [encoder.cost(len(sentence.ids)) for sentence in distinct]
        size = self._max_sentences
        planned = [
            group[begin : begin + size]
            for group in cheapest(costs, encoder.budget, encoder.overhead)
            for begin in range(0, len(group), min(size, len(group)))
        ]

        def run(group: list[int]) -> float:
            feeds = encoder_feeds(encoder.card, collate([distinct[i] for i in group]))
            vectors[group], seconds = self._threads.timed(encoder.session, feeds)
            return seconds

        seconds = sum(await self._threads.call(self._threads.each, run, planned))
        if not np.isfinite(vectors).all():
            raise InferenceFailed("the model gave NaN or infinity")
        if len(distinct) < len(sentences):
            vectors = vectors[[rows[sentence.key] for sentence in sentences]]
        return Encoded(vectors, 0.0, seconds)


def direct_engine(
    parses: DirectParses, threads: DirectThreads, max_sentences: int | None = None
) -> Engine:
    """An engine for one call, whose steps never wait."""
    return Engine(
        parses=parses,
        scheduler=DirectScheduler(threads, max_sentences),
        head_threads=threads,
        explain_threads=threads,
        admission=Admission(sys.maxsize),
        max_batch_inputs=sys.maxsize,
    )

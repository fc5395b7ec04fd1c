"""What a request asks for: its steps, and the graph runs that they wait for.

A request is a generator. Between two `yield`s it does a few ms of Python at most. It yields None to let other
requests go on, and Work, whose outputs are there when it goes on. `run_now` runs one request in the caller's thread;
`runtime.engine.engine` runs many on an event loop, in shared batches.
"""

import logging
from collections.abc import Generator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from time import monotonic
from typing import Any, Generic, TypeVar

from heedful.runtime.errors import InferenceFailed
from heedful.text.batch import Runner, run_in_batches

log = logging.getLogger(__name__)

T = TypeVar("T")


class Work(Generic[T]):
    """Items for a runner, and its output for each."""

    __slots__ = ("items", "outputs", "runner", "seconds")

    def __init__(self, runner: Runner[T], items: Sequence[Any]) -> None:
        self.runner, self.items = runner, items
        self.outputs: list[Any] = []
        """In order; there once the work is done."""
        self.seconds = 0.0
        """What the batches took that held the items."""


Steps = Generator[Work[Any] | None, None, T]


@dataclass(frozen=True, slots=True)
class Request(Generic[T]):
    """The steps of a request of so many rows. `bulk` may wait while other requests do not."""

    steps: Steps[T]
    rows: int
    bulk: bool = False


def run(runner: Runner[T], items: Sequence[Any]) -> Steps[Work[T]]:
    """The work, done. Raises InferenceFailed where the runner fails on one of the items."""
    work = Work(runner, items)
    if items:
        yield work
    return work


def run_now(steps: Steps[T], threads: Executor | None = None, *, max_items: int | None = None) -> T:
    """The result of the steps, in the caller's thread.

    Batches hold at most `max_items` items; `threads` run several at once. Raises what the steps raise.
    """
    run_all = map if threads is None else threads.map
    try:
        work = next(steps)
        while True:
            if work is not None:
                started = monotonic()
                try:
                    work.outputs = run_in_batches(
                        work.runner, work.items, run_all=run_all, max_items=max_items
                    )
                except Exception:  # whatever a graph raises
                    log.exception("%s failed on %d items", work.runner.name, len(work.items))
                    work = steps.throw(failure(work.runner))
                    continue
                work.seconds = monotonic() - started
            work = next(steps)
    except StopIteration as done:
        result: T = done.value
        return result


def failure(runner: Runner[Any]) -> InferenceFailed:
    """What the callers are told of a batch on which the runner has failed."""
    if runner.stage == "parse":
        return InferenceFailed("the parser failed on one of the texts")
    return InferenceFailed("the model failed on this input")

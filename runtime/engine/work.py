"""A request's steps, and the graph runs that they wait for.

A request is a generator. Between two `yield`s it does a few ms of Python at most. It yields None to let other requests
go on, and Work, which has its outputs when the generator goes on. `run_now` runs one request in the caller's thread;
`runtime.engine.engine` runs many on an event loop, in shared batches.
"""

import asyncio
import logging
import sys
import time
from collections.abc import Generator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from heedful.runtime.errors import InferenceFailed, OutOfMemory
from heedful.text.arc_parser import Tree
from heedful.text.batch import Runner, run_in_batches
from heedful.text.parse import Parse, Parser, parses_of
from heedful.text.tokenize import Tokens

log = logging.getLogger(__name__)

T = TypeVar("T")

PAUSE_SECONDS = 0.002
"""How long texts are tokenized between two pauses."""


class Work(Generic[T]):
    """Items for a runner, and its output for each."""

    def __init__(self, runner: Runner[T], items: Sequence[Any]) -> None:
        self.runner, self.items = runner, items
        self.outputs: list[Any] = [None] * len(items)
        """In the items' order, once the work is done."""
        self.began = time.perf_counter()
        self.seconds = 0.0
        """Of the batches that held the items. The engine counts them."""
        self.left = len(items)
        """Items without an output."""
        self.planned = 0
        """Items that are in planned batches."""
        self.costs = runner.costs(items)
        self.request: Request[Any]
        """The request that waits for it, if an engine runs it."""


Steps = Generator[Work[Any] | None, None, T]


@dataclass(slots=True)
class Waits:
    """Seconds for which a request waited for models, and those of the batches that held its items.

    Threads run several batches at once.
    """

    total: float = 0.0
    batches: float = 0.0


@dataclass(slots=True, eq=False)
class Request(Generic[T]):
    """The steps of a request of `rows` rows. An engine, which runs it once, fills the other fields."""

    steps: Steps[T]
    rows: int
    waits: Waits = field(default_factory=Waits)
    queue: Any = None
    """The engine's queue in which it waits."""
    future: asyncio.Future[T] = field(init=False)
    work: Work[Any] | None = None
    """The work that it waits for."""


def parse(parser: Parser, texts: Sequence[str], max_tokens: int, tree: bool) -> Steps[list[Parse]]:
    """`Parser.parse`. Raises InferenceFailed."""
    read: list[Tokens] = []
    until = time.monotonic() + PAUSE_SECONDS
    for text in texts:
        if time.monotonic() > until:
            yield None
            until = time.monotonic() + PAUSE_SECONDS
        read.append(parser.tokenizer.tokenize(text, max_tokens))
    trees: Sequence[Tree] = ()
    if tree and parser.trees:
        work = Work(parser.trees, [tokens for tokens in read if tokens.forms])
        yield work
        trees = work.outputs
    return parses_of(texts, read, trees, tree)


def run_now(steps: Steps[T], threads: Executor | None = None, *, max_items: int | None = None) -> T:
    """The result of the steps, in the caller's thread.

    Batches hold at most `max_items` items; `threads` run several at once. Raises what the steps raise.
    """
    run_all = map if threads is None else threads.map
    while True:
        try:
            work = next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
        while work is not None and work.left:
            try:
                work.outputs = run_in_batches(
                    work.runner, work.items, run_all=run_all, max_items=max_items
                )
                work.left = 0
            except OutOfMemory:
                if max_items == 1:
                    raise
                # Smaller batches from now on.
                max_items = max(1, min(max_items or sys.maxsize, len(work.items)) // 2)
            except Exception as error:  # whatever a graph raises
                log.exception("%s failed on %d items", work.runner.name, len(work.items))
                raise failure(work.runner) from error


def failure(runner: Runner[Any]) -> InferenceFailed:
    """The error that the requests of a failed batch get."""
    if runner.stage == "parse":
        return InferenceFailed("the parser failed on one of the texts")
    return InferenceFailed("the model failed on this input")

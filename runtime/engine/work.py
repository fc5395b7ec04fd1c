"""A request's steps, and the graph runs that they wait for.

A request is a generator. Between two `yield`s it does a few ms of Python at most. It yields None to let other requests
go on, and Work, which has its outputs when the generator goes on. `run_now` runs one request in the caller's thread;
`runtime.engine.engine` runs many on an event loop, in shared batches.
"""

import logging
import sys
import time
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from heedful.runtime.engine.cache import Key, VectorCache
from heedful.runtime.engine.session import EncoderRunner
from heedful.runtime.errors import InferenceFailed, OutOfMemory
from heedful.text.arc_parser import Tree
from heedful.text.arrays import Floats
from heedful.text.batch import Runner, Sentence, run_in_batches
from heedful.text.parse import Parse, ParseJob, Parser, parses_of
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
        self.seconds = 0.0
        """Of the batches that held the items."""
        self.left = len(items)
        """Items without an output."""
        self.planned = 0
        """Items that are in planned batches."""
        self.costs = runner.costs(items)
        self.number = 0
        """The work's place in the order of all works."""
        self.request: Any = None
        """The engine's entry whose work it is."""


Steps = Generator[Work[Any] | None, None, T]


@dataclass(slots=True)
class Request(Generic[T]):
    """The steps of a request of `rows` rows. With `bulk` it waits while other requests are answered."""

    steps: Steps[T]
    rows: int
    bulk: bool = False


class Encoded(NamedTuple):
    """Vectors (N, D), seconds in the queue, and seconds of the batches that held the sentences."""

    vectors: Floats
    queue: float
    inference: float


def parse(parser: Parser, jobs: Sequence[ParseJob]) -> Steps[list[Parse]]:
    """A parse for each job, in order. Raises InferenceFailed."""
    texts: list[Tokens] = []
    until = time.monotonic() + PAUSE_SECONDS
    for job in jobs:
        if time.monotonic() > until:
            yield None
            until = time.monotonic() + PAUSE_SECONDS
        texts.append(parser.tokenizer.tokenize(job.text, job.max_tokens))
    trees: Iterator[Tree] = iter(())
    if parser.trees and (with_tree := parser.texts_with_tree(jobs, texts)):
        work = Work(parser.trees, with_tree)
        yield work
        trees = iter(work.outputs)
    return parses_of(jobs, texts, trees)


def encode(
    encoder: EncoderRunner, sentences: Sequence[Sentence], cache: VectorCache | None = None
) -> Steps[Encoded]:
    """The sentences' vectors, in order, not scaled; equal ones are encoded once. Raises InferenceFailed."""
    began = time.perf_counter()
    card = encoder.card
    keys: list[Key] = [(card.version, card.alpha, sentence.key) for sentence in sentences]
    distinct = dict(zip(keys, sentences, strict=True))
    vectors = cache.get(list(distinct)) if cache is not None else {}
    missing = {key: sentence for key, sentence in distinct.items() if key not in vectors}
    work = Work(encoder, list(missing.values()))
    yield work
    for key, vector in zip(missing, work.outputs, strict=True):
        vectors[key] = vector
        if cache is not None:
            cache.put(key, vector)
    rows = np.array([vectors[key] for key in keys])
    if not np.isfinite(rows).all():
        raise InferenceFailed("the model gave NaN or infinity")
    waited = time.perf_counter() - began - work.seconds
    return Encoded(rows, max(waited, 0.0), work.seconds)


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
        began = time.monotonic()
        while work is not None and work.left:
            try:
                work.outputs = run_in_batches(
                    work.runner, work.items, run_all=run_all, max_items=max_items
                )
                work.left, work.seconds = 0, time.monotonic() - began
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

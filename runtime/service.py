"""The service: texts in, vectors and probabilities out. HTTP and the command line stand on it."""

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from heedful.runtime.answers import (
    Result,
    Timing,
    TokenizedText,
    cosines,
    expected_score,
    normalise,
    softmax,
)
from heedful.runtime.bundle_loader import BundleLoader, Reloaded
from heedful.runtime.card import Card
from heedful.runtime.checks import check_count, check_parse, check_texts
from heedful.runtime.cores import usable_cores
from heedful.runtime.errors import Overloaded, StartupError, Unavailable
from heedful.runtime.explain_service import (
    Explained,
    ExplainOptions,
    check_length,
    check_priors,
    explain,
    explain_graph_of,
)
from heedful.runtime.loaded_model import LoadedModel
from heedful.runtime.memory import trim_heap
from heedful.runtime.model_registry import ModelRegistry, Task, check_parser
from heedful.runtime.observer import NoObserver, Observer
from heedful.runtime.parse_pool import FAILURES, ParsePool
from heedful.runtime.parse_process import Ready
from heedful.runtime.parses import Parses
from heedful.runtime.scheduler import Encoded, Scheduler
from heedful.runtime.session import STUCK_SECONDS, Device, SessionThreads, split_threads
from heedful.text.batch import Sentence
from heedful.text.parse import Parse, ParseJob
from heedful.text.pieces import Lexicon
from heedful.text.trees import first

__all__ = [
    "NoObserver",
    "Observer",
    "Options",
    "Reloaded",
    "Result",
    "Service",
    "Timing",
    "TokenizedText",
    "normalise",
    "running",
]

T = TypeVar("T")
Item = str | Parse
"""A text, or a tree that is given in its place and is read as it is."""

NICENESS = 10
"""Of the thread that explains: the others go first where processors are short."""
TIDY_SECONDS = 2.0
"""Between two looks at what requests have freed: glibc keeps it, and more of it with every burst."""
RETRY_AFTER = 1
"""Seconds: a full queue is worked off in about that."""


@dataclass(frozen=True)
class Options:
    """`max_queue` bounds the inputs of all requests in hand, `max_batch_inputs` those of one.

    `cache_items` are kept of parses and of vectors each, within `runtime.cache.BYTES`; 0 is none.
    """

    models: Path
    parser: str | None = None  # a spaCy pipeline; None is the folder `parser` under `models`
    device: Device = "auto"
    threads: int = field(default_factory=usable_cores)
    parse_workers: int = field(default_factory=usable_cores)
    max_queue: int = 2048
    max_batch_inputs: int = 512
    cache_items: int = 0


class Service:
    """Every bundle of a folder, behind one pool of parsers. For one event loop."""

    def __init__(self, options: Options, observer: Observer | None = None) -> None:
        if options.max_queue < options.max_batch_inputs:
            raise StartupError(
                f"max_queue ({options.max_queue}) is less than max_batch_inputs "
                f"({options.max_batch_inputs}): a full request could never be admitted"
            )
        self.options = options
        self._observer = observer or NoObserver()
        pipeline = options.parser or options.models / "parser"
        self._pool = ParsePool(pipeline, options.parse_workers, self._observer)
        at_a_time, threads = split_threads(options.device, options.threads)
        self._encoders = SessionThreads(at_a_time)
        self._heads = SessionThreads()  # of its own: a head is small, and waits for no batch
        self._explain_threads = SessionThreads(niceness=NICENESS)
        self._scheduler = Scheduler(self._encoders, self._observer, options.cache_items)
        self._parses = Parses(self._pool, options.cache_items, self._observer)
        self._loader = BundleLoader(options.models, options.device, threads, self._encoders)
        self._registry = ModelRegistry({})
        self._parser: Ready
        self._changing = asyncio.Lock()  # held while models are loaded
        self.refused: tuple[str, ...] = ()
        """Why the last reload has left something as it was; a line each."""
        self._state: Literal["starting", "started", "stopping"] = "starting"
        self._in_hand = 0  # inputs admitted and not yet answered
        self._used = False  # since memory was last given back
        self._tidying: asyncio.Task[None] | None = None
        self._empty = asyncio.Event()
        self._empty.set()

    @property
    def cards(self) -> Mapping[str, Card]:
        """Cards of the loaded models by name, in order of their names."""
        return self._registry.cards

    @property
    def defaults(self) -> Mapping[Task, str]:
        """The model that does each task where none is named."""
        return self._registry.defaults

    @property
    def provider(self) -> str:
        """The execution provider in use, asked of a session; "" before the start."""
        return self._registry.provider

    @property
    def precisions(self) -> Mapping[str, str]:
        """What each loaded model computes its products in, "int8" or "float32", by name."""
        return {name: model.precision for name, model in self._registry.models.items()}

    async def start(self) -> None:
        """Load every bundle and the parsers, and run each model once at several shapes.

        Raises StartupError, or one of its kinds; nothing is left running then.
        """
        async with self._changing:
            parsers = asyncio.create_task(self._pool.start())
            try:
                self._registry = await self._loader.load()
                self._parser = await parsers
                await self._parses.start(self._parser.tokenizer)
                for model in self._registry.models.values():
                    check_parser(model.card, self._parser)
                for model in self._registry.models.values():
                    await model.warm(self._encoders)
                self._scheduler.start()
                await asyncio.to_thread(trim_heap)
            except BaseException:
                parsers.cancel()
                await asyncio.gather(parsers, return_exceptions=True)
                await self.stop(grace=0)
                raise
            self._tidying = asyncio.create_task(self._tidy())
            self._state = "started"

    async def reload(self) -> Reloaded:
        """Serve what the folder of bundles holds now. Waits for the start, or another reload.

        New models are warm before they are offered, all at once. A request keeps the model that it
        was given to, and an old model goes with its last request. Raises Unavailable when stopping.
        """
        async with self._changing:
            if self._state != "started":
                raise Unavailable(f"the service is {self._state}: it loads no models")
            self._registry, done = await self._loader.reload(self._registry, self._parser)
            self.refused = done.refused
            await asyncio.to_thread(trim_heap)
            return done

    async def stop(self, grace: float) -> None:
        """Take no more requests, answer those in hand within `grace` seconds, end everything."""
        self._state = "stopping"
        if self._tidying:
            self._tidying.cancel()
        with suppress(TimeoutError):  # what is still in hand then fails with Unavailable
            async with asyncio.timeout(grace):
                await self._empty.wait()
        await self._scheduler.stop()
        await self._pool.stop()
        await self._encoders.stop()
        await self._heads.stop()
        await self._explain_threads.stop()

    def ready(self) -> str | None:
        """None where every model is loaded and every parse process lives, else what is missing."""
        if self._state != "started":
            return f"the service is {self._state}"
        alive, wanted = self._pool.alive, self._pool.wanted
        if alive < wanted:
            return f"{alive} of {wanted} parse processes are up"
        if failing := [name for name in self._scheduler.failures if name in self.cards]:
            return f"the session of {', '.join(failing)} fails"
        return self.fault()

    def fault(self) -> str | None:
        """Why nothing but a new process can help, or None."""
        if self._pool.down:
            return "every parse process has died again and again, or does not come up"
        if self._encoders.stuck or self._heads.stuck:
            return f"a model has not answered for {STUCK_SECONDS:.0f} s"
        for name, times in self._scheduler.failures.items():
            if times >= FAILURES and name in self.cards:
                return f"the session of {name} has failed {times} times in a row, on any input"
        return None

    def card(self, task: Task, model: str | None = None) -> Card:
        """The card of the model that would answer. Raises UnknownModel, WrongTask, Unavailable."""
        return self._choose(task, model).card

    async def embed(
        self, texts: Sequence[Item], *, model: str | None = None, truncate: bool = False
    ) -> Result[npt.NDArray[np.float32]]:
        """(N, D) vectors, not normalised: see `normalise`."""
        chosen = self._choose("embed", model)
        params = self._check_inputs(texts)
        with self._admitted(len(texts)):
            read = await self._read(chosen, texts, params, truncate=truncate)
            encoded = await self._scheduler.encode(chosen.encoder, read.sentences)
        return read.result(encoded.vectors, encoded)

    async def similarity(
        self,
        source: str,
        others: Sequence[str],
        *,
        model: str | None = None,
        truncate: bool = False,
    ) -> Result[npt.NDArray[np.float64]]:
        """(N,) cosines of one text with each of the others."""
        chosen = self._choose("embed", model)
        check_count(len(others), "others", self.options.max_batch_inputs)
        params = ["source", *(f"others[{i}]" for i in range(len(others)))]
        texts = [source, *others]
        check_texts(texts, params)
        with self._admitted(len(others)):
            read = await self._read(chosen, texts, params, truncate=truncate)
            encoded = await self._scheduler.encode(chosen.encoder, read.sentences)
        return read.result(cosines(encoded.vectors[0], encoded.vectors[1:]), encoded)

    async def classify(
        self,
        texts: Sequence[Item],
        *,
        model: str | None = None,
        truncate: bool = False,
        raw: bool = False,
    ) -> Result[npt.NDArray[Any]]:
        """(N, C) probabilities in the order of the card's labels; logits where `raw` is set."""
        chosen = self._choose("classify", model)
        params = self._check_inputs(texts)
        with self._admitted(len(texts)):
            read = await self._read(chosen, texts, params, truncate=truncate)
            encoded = await self._scheduler.encode(chosen.encoder, read.sentences)
            logits, seconds = await chosen.logits(self._heads, encoded.vectors)
        return read.result(logits if raw else softmax(logits), encoded, seconds)

    async def nli(
        self,
        pairs: Sequence[tuple[Item, Item]],
        *,
        model: str | None = None,
        truncate: bool = False,
        raw: bool = False,
    ) -> Result[npt.NDArray[Any]]:
        """(N, 3) probabilities of (premise, hypothesis), in the order of the card's labels.

        Logits where `raw` is set.
        """
        chosen = self._choose("nli", model)
        sides = ("premise", "hypothesis")
        read, encoded, logits, seconds = await self._compare(chosen, pairs, sides, truncate)
        return read.result(logits if raw else softmax(logits), encoded, seconds, texts_per_input=2)

    async def relatedness(
        self,
        pairs: Sequence[tuple[Item, Item]],
        *,
        model: str | None = None,
        truncate: bool = False,
    ) -> Result[npt.NDArray[np.float64]]:
        """(N,) how related the sentences (a, b) of each pair are, from 1 to 5."""
        chosen = self._choose("relatedness", model)
        read, encoded, logits, seconds = await self._compare(chosen, pairs, ("a", "b"), truncate)
        return read.result(expected_score(logits), encoded, seconds, texts_per_input=2)

    async def tokenize(
        self, texts: Sequence[Item], *, model: str | None = None, truncate: bool = False
    ) -> Result[list[TokenizedText]]:
        """The tokens that the model would read, always with their tree."""
        chosen = self._choose("embed", model)
        params = self._check_inputs(texts)
        with self._admitted(len(texts)):
            read = await self._read(chosen, texts, params, truncate=truncate, tree=True)
        return read.result(read.texts())

    async def explain(
        self,
        items: Sequence[Item],
        params: Sequence[str],
        asked: ExplainOptions,
        *,
        task: Task = "explain",
        model: str | None = None,
        truncate: bool = False,
    ) -> Result[tuple[list[TokenizedText], Explained]]:
        """What the model attends to in a sentence, or in the two of a pair.

        `task` says who answers where no `model` does: explain, or of a pair nli or relatedness.
        """
        chosen = self._choose(task, model)
        check_priors(chosen, asked)
        check_texts(items, params)
        most = explain_graph_of(chosen).max_tokens
        with self._admitted(1):
            read = await self._read(
                chosen, items, params, truncate=truncate, tree=True, most=most if truncate else None
            )
            for parse, param in zip(read.parses, params, strict=True):
                check_length(chosen, parse, param)
            explained = await explain(chosen, self._explain_threads, read.parses, asked)
        spent = Encoded(np.empty((0, 0), np.float32), explained.waited, explained.seconds)
        return read.result((read.texts(), explained), spent, texts_per_input=len(items))

    async def _compare(
        self,
        model: LoadedModel,
        pairs: Sequence[tuple[Item, Item]],
        sides: tuple[str, str],
        truncate: bool,
    ) -> "tuple[_Read, Encoded, npt.NDArray[np.float32], float]":
        """The pairs as read and encoded, the head's logits (N, C), and the head's seconds.

        `sides` are the names of a pair's fields.
        """
        check_count(len(pairs), "pairs", self.options.max_batch_inputs)
        params = [f"pairs[{i}].{side}" for i in range(len(pairs)) for side in sides]
        texts = [text for pair in pairs for text in pair]
        check_texts(texts, params)
        with self._admitted(len(pairs)):
            read = await self._read(model, texts, params, truncate=truncate)
            encoded = await self._scheduler.encode(model.encoder, read.sentences)
            firsts, seconds = encoded.vectors[0::2], encoded.vectors[1::2]
            logits, spent = await model.logits(self._heads, firsts, seconds)
        return read, encoded, logits, spent

    def _choose(self, task: Task, name: str | None) -> LoadedModel:
        """The model to answer a new request."""
        if self._state != "started":
            raise Unavailable(f"the service is {self._state}: it takes no requests")
        return self._registry.choose(task, name)

    async def _read(
        self,
        model: LoadedModel,
        items: Sequence[Item],
        params: Sequence[str],
        *,
        truncate: bool,
        tree: bool = False,
        most: int | None = None,
    ) -> "_Read":
        """Parse the texts and look their words up; `most` tokens, where that is less than the card's."""
        card = model.card
        started = time.perf_counter()
        most = min(card.max_tokens, most or card.max_tokens)
        jobs = [ParseJob(item, most, tree or card.tree) for item in items if isinstance(item, str)]
        parsed = iter(await self._parses.get(jobs))
        parses = [next(parsed) if isinstance(item, str) else _cut(item, most) for item in items]
        parses = [model.fit(parse) for parse in parses]
        for parse, param in zip(parses, params, strict=True):
            check_parse(parse, param, card, model.vocab.limit, truncate=truncate)
        sentences = [model.sentence(parse) for parse in parses]
        return _Read(card, model.vocab, parses, sentences, time.perf_counter() - started)

    def _check_inputs(self, texts: Sequence[Item]) -> list[str]:
        """Check them, and give the name of each one's field."""
        check_count(len(texts), "inputs", self.options.max_batch_inputs)
        params = [f"inputs[{i}]" for i in range(len(texts))]
        check_texts(texts, params)
        return params

    async def _tidy(self) -> None:
        """Return memory to the operating system, again and again."""
        while True:
            await asyncio.sleep(TIDY_SECONDS)
            if self._used:
                self._used = bool(self._in_hand)
                if not self._used:
                    gc.collect()  # cycles that refused requests leave behind wait for long otherwise
                await asyncio.to_thread(trim_heap)

    @contextmanager
    def _admitted(self, inputs: int) -> Iterator[None]:
        """Count the request's inputs as in hand, or refuse it whole."""
        if self._in_hand + inputs > self.options.max_queue:
            raise Overloaded(
                f"{self._in_hand} inputs are in hand and at most {self.options.max_queue} may be: "
                f"try again in {RETRY_AFTER} s",
                retry_after=RETRY_AFTER,
            )
        self._in_hand += inputs
        self._used = True
        self._empty.clear()
        try:
            yield
        finally:
            self._in_hand -= inputs
            if not self._in_hand:
                self._empty.set()


@asynccontextmanager
async def running(options: Options) -> AsyncIterator[Service]:
    """A started service for the while. Raises what its start raises."""
    service = Service(options)
    await service.start()
    try:
        yield service
    finally:
        await service.stop(grace=0)


def _cut(parse: Parse, most: int) -> Parse:
    """A given tree's first tokens."""
    return parse if len(parse) <= most else first(parse, most)


@dataclass(frozen=True, slots=True)
class _Read:
    """A request's texts, parsed."""

    card: Card
    vocab: Lexicon
    parses: list[Parse]
    sentences: list[Sentence]
    seconds: float

    def texts(self) -> list[TokenizedText]:
        return [
            TokenizedText(parse, self.vocab.word_ids(sentence), self.vocab.known(sentence))
            for parse, sentence in zip(self.parses, self.sentences, strict=True)
        ]

    def result(
        self,
        value: T,
        encoded: Encoded | None = None,
        head_seconds: float = 0.0,
        *,
        texts_per_input: int = 1,
    ) -> Result[T]:
        queue, inference = (encoded.queue, encoded.inference) if encoded else (0.0, 0.0)
        cut = [parse.cut for parse in self.parses]
        return Result(
            value=value,
            card=self.card,
            timing=Timing(self.seconds, queue, inference + head_seconds),
            inputs=len(cut) // texts_per_input,
            truncated=sum(
                any(cut[i : i + texts_per_input]) for i in range(0, len(cut), texts_per_input)
            ),
            tokens=sum(map(len, self.sentences)),
            unknown=sum(
                len(sentence) - int(np.count_nonzero(self.vocab.known(sentence)))
                for sentence in self.sentences
            ),
        )

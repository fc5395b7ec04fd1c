"""The service: its start, reload, stop and readiness, for HTTP and the command line."""

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from heedful.runtime.bundles.loader import BundleLoader, Loaded, Reloaded
from heedful.runtime.cores import usable_cores
from heedful.runtime.device import Device, limit_memory, resolve
from heedful.runtime.engine.cache import VectorCache
from heedful.runtime.engine.engine import STUCK_SECONDS, Engine
from heedful.runtime.engine.health import FAILURES
from heedful.runtime.engine.work import Request, Steps
from heedful.runtime.errors import StartupError, Unavailable
from heedful.runtime.inference import Inference
from heedful.runtime.memory import trim_heap
from heedful.runtime.model_registry import ModelRegistry, Task
from heedful.runtime.observer import Observer
from heedful.runtime.out_of_distribution import OutOfDistributionCounter
from heedful.runtime.zero_shot import ZeroShot
from heedful.text.parse import Parser

__all__ = ["Options", "Reloaded", "Service", "running"]

T = TypeVar("T")

SELF_TEST_INTERVAL = 10.0
"""Seconds for which a self-test's result is kept: each client may request one."""
TRIM_INTERVAL = 2.0
"""Seconds between two trims of the heap: glibc keeps the memory that requests have freed."""


@dataclass(frozen=True)
class Options:
    """`max_queue` bounds the inputs in flight of all requests, `max_batch_inputs` those of a request.

    Batches run on the event loop, or in `threads` threads if that is set. On a GPU they run in one thread, and
    `processes`, by default one a core, share its memory. Up to `cache_items` vectors are cached, within
    `runtime.engine.cache.BYTES`; 0 turns the cache off.
    """

    models: Path
    parser: str | None = None  # a spaCy pipeline; None is the folder `parser` under `models`
    device: Device = "auto"
    processes: int | None = None
    threads: int | None = None
    max_queue: int = 8192
    max_batch_inputs: int = 2048
    cache_items: int = 0


class Service:
    """The bundles of a folder, served from an event loop."""

    def __init__(
        self, options: Options, observer: Observer | None = None, loaded: Loaded | None = None
    ) -> None:
        """`loaded` holds the folder's models if they are loaded already."""
        if options.max_queue < options.max_batch_inputs:
            raise StartupError(
                f"max_queue ({options.max_queue}) is less than max_batch_inputs "
                f"({options.max_batch_inputs}): a full request could never be admitted"
            )
        observer = observer or Observer()
        self.options = options
        device = resolve(options.device)
        on_cuda = device == "cuda"
        if on_cuda:
            limit_memory(options.processes or usable_cores())
        # A GPU runs one large batch at a time; on a CPU several small batches are faster than a large one over threads.
        batch_threads = 1 if on_cuda else options.threads or 0
        graph_threads = (options.threads or 1) if on_cuda else 1
        self._engine = Engine(observer, options.max_queue, batch_threads)
        self.waiting: Mapping[str, int] = self._engine.waiting
        """Texts that wait for the parser, and sentences and rows that wait for a model, by stage."""
        self._cache = VectorCache(options.cache_items, observer) if options.cache_items else None
        self._out_of_distribution = OutOfDistributionCounter(observer)
        self._loader = BundleLoader(options.models, device, graph_threads)
        self._loaded = loaded
        self.registry = ModelRegistry({})
        """The models that are served."""
        self._parser: Parser
        self._loading = asyncio.Lock()  # held while models are loaded
        self.refused: tuple[str, ...] = ()
        """Why the last reload left models unchanged, a line each."""
        self._testing = asyncio.Lock()
        self._last_test: tuple[float, Mapping[str, list[str]]] | None = None
        """Its time and its result."""
        self.state: Literal["starting", "started", "stopping"] = "starting"
        """When it is stopping, it takes no more requests."""
        self._is_untrimmed = False  # whether requests have used memory since the last trim
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def parser(self) -> Mapping[str, str] | None:
        """Name and fingerprint of the parser; None where no model needs one."""
        parser = self._parser
        return {"name": parser.name, "fingerprint": parser.fingerprint} if parser.trees else None

    @property
    def deviations(self) -> Mapping[str, float | None]:
        """Each model's largest change of a golden vector, at the last check; None without golden vectors."""
        return {name: model.deviation for name, model in self.registry.models.items()}

    def bind(self, task: Task, model: str | None = None) -> Inference:
        """The model for a request's task.

        Raises UnknownModel, WrongTask, and Unavailable unless the service has started.
        """
        if self.state != "started":
            raise Unavailable(
                f"the service is {self.state}: it takes no requests",
                code="not_ready" if self.state == "starting" else None,
            )
        chosen = self.registry.choose(task, model)
        max_rows = self.options.max_batch_inputs
        answered = self._out_of_distribution.answered
        return Inference(chosen, self._parser, max_rows, self._cache, answered)

    def zero_shot(self, first: Inference, *, named: bool) -> ZeroShot:
        """Zero-shot classification only by a bound model if the client has `named` it, or if it is no embedding model.

        Else by the default NLI model too and, with it, by the sentiment model, if they are loaded.
        """
        inferences = [first]
        if not named and first.model.card.kind == "embedding" and "nli" in self.registry.defaults:
            inferences.append(self.bind("nli"))
            if sentiment := self.registry.sentiment:
                inferences.append(self.bind("classify", sentiment))
        return ZeroShot(inferences)

    async def answer(self, request: Request[T], *, bulk: bool = False) -> T:
        """The result of a bound model's request. A bulk request waits while others are answered.

        Raises what `Engine.answer` raises.
        """
        self._is_untrimmed = True
        return await self._engine.answer(request, bulk=bulk)

    async def start(self) -> None:
        """Load the bundles and the parser, unless they are loaded already.

        Raises StartupError or a subclass, after everything has stopped.
        """
        async with self._loading:
            try:
                loaded = self._loaded
                if loaded is None:
                    loaded = await asyncio.to_thread(self._loader.load, self.options.parser)
                self._loaded = None  # so that a reload frees the models that it replaces
                self.registry, self._parser = loaded.registry, loaded.parser
                await asyncio.to_thread(trim_heap)
            except BaseException:
                await self.stop(timeout=0)
                raise
            background = (self._trim(), self._out_of_distribution.run())
            self._tasks = [asyncio.create_task(coroutine) for coroutine in background]
            self.state = "started"

    async def reload(self) -> Reloaded:
        """Serve the bundles that the folder holds now. Waits for the start or another reload.

        New models are warmed up, then all are swapped in together. A request keeps the model that it is bound to.
        Raises Unavailable when stopping.
        """
        async with self._loading:
            if self.state != "started":
                raise Unavailable(f"the service is {self.state}: it loads no models")
            self.registry, reloaded = await asyncio.to_thread(
                self._loader.reload, self.registry, self._parser
            )
            self.refused = reloaded.refused
            self._last_test = None  # of the previous models
            await asyncio.to_thread(trim_heap)
            return reloaded

    async def self_test(self) -> Mapping[str, list[str]]:
        """Run the golden sentences of all models, at most once in SELF_TEST_INTERVAL.

        Returns the changes, in words, of each model that has changed; `deviations` are up to date then. Raises
        InferenceFailed, Unavailable.
        """
        async with self._testing:
            now = time.monotonic()
            if self._last_test is None or now - self._last_test[0] > SELF_TEST_INTERVAL:
                self._last_test = now, await self.answer(Request(self._golden(), rows=1))
            return self._last_test[1]

    def _golden(self) -> Steps[Mapping[str, list[str]]]:
        """Parse and encode the golden sentences again, without the cache."""
        moved = {}
        for name, model in self.registry.models.items():
            if changes := (yield from model.moved(self._parser)):
                moved[name] = changes
        return moved

    async def stop(self, timeout: float) -> None:
        """Refuse new requests, answer those in flight within `timeout` seconds, fail the others, and end the engine."""
        self.state = "stopping"
        for task in self._tasks:
            task.cancel()
        await self._engine.stop(timeout)

    def trim_later(self) -> None:
        """Trim the heap soon: a large request has used memory even if it was refused."""
        self._is_untrimmed = True

    def ready(self) -> str | None:
        """None if all models are loaded and work, else the reason why not."""
        if self.state != "started":
            return f"the service is {self.state}"
        if failing := self._failures():
            return f"the session of {', '.join(failing)} fails"
        return self.fault()

    def fault(self) -> str | None:
        """A reason why only a new process can recover, or None."""
        if self._engine.stuck:
            return f"a model has not answered for {STUCK_SECONDS:.0f} s"
        for name, count in self._failures().items():
            if count >= FAILURES:
                return f"the session of {name} has failed {count} times in a row, on any input"
        return None

    def _failures(self) -> dict[str, int]:
        """The models whose sessions fail, with the number of failures in a row."""
        failures, models = self._engine.health.failures, self.registry.models.items()
        return {name: failures[m.encoder] for name, m in models if m.encoder in failures}

    async def _trim(self) -> None:
        """Return memory to the operating system after requests."""
        while True:
            await asyncio.sleep(TRIM_INTERVAL)
            if self._is_untrimmed:
                self._is_untrimmed = self._engine.in_flight > 0
                if not self._is_untrimmed:
                    gc.collect()  # else the cycles that refused requests leave stay for long
                await asyncio.to_thread(trim_heap)


@asynccontextmanager
async def running(options: Options) -> AsyncIterator[Service]:
    """A started service. Raises what its start raises."""
    service = Service(options)
    await service.start()
    try:
        yield service
    finally:
        await service.stop(timeout=0)

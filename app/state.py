"""AppState: everything that the routes and the server of one application share."""

import asyncio
import logging
import ssl
import time
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from fastapi import FastAPI

from heedful.app.http.auth import Keys
from heedful.app.http.request_record import Deadlines
from heedful.app.http.tls import reload_certificate
from heedful.app.observability.metrics import Metrics
from heedful.app.process.table import Slot
from heedful.app.settings import Settings
from heedful.runtime.errors import StartupError, Unavailable
from heedful.runtime.service import Reloaded, Service

log = logging.getLogger("heedful.server")

RELOAD_SECONDS = 60.0
"""How long a reload waits for the other serving processes."""


class Connection(Protocol):
    """A client's connection."""

    def give_way(self, limit: str) -> None:
        """Close it, which has no request in progress, for this limit's sake."""


@dataclass(slots=True)
class AppState:
    """One application's settings, service and metrics, and the service's life."""

    settings: Settings
    service: Service
    metrics: Metrics
    slot: Slot
    """This process's place among those behind the port."""
    max_connections: int
    """This process's limit."""
    keys: Keys
    preloaded: bool = False
    """Whether the service had its models before it started."""
    deadlines: Deadlines = field(default_factory=Deadlines)
    """Those of the requests that are being answered."""
    waiting: dict[Connection, None] = field(default_factory=dict)
    """Connections without a request in progress, the oldest first."""
    running: Collection[object] = ()
    """The server's tasks, one for each request in progress; empty where no server of ours runs the application."""
    tls: ssl.SSLContext | None = None
    """What the server encrypts with; None where it does not."""
    starting: asyncio.Task[None] = field(init=False)
    """Loads the models; holds the StartupError when they do not load."""

    _reloading: asyncio.Lock = field(default_factory=asyncio.Lock)

    def start(self) -> None:
        """Begin to load the models."""
        self.starting = asyncio.create_task(self._load())

    async def _load(self) -> None:
        asked = 0 if self.preloaded else self.slot.table.reloads_asked
        await self.service.start()
        self.slot.reloads_done = asked
        for alias, name in self.settings.aliases.items():
            if alias in self.service.registry.cards:
                raise StartupError(
                    f"HEEDFUL_ALIASES: {alias}={name}: {alias} is a model's own name, which an "
                    "alias cannot change: leave it out"
                )
            if name not in self.service.registry.cards:
                raise StartupError(
                    f"HEEDFUL_ALIASES: {alias}={name}: there is no model {name}; "
                    f"known are: {', '.join(self.service.registry.cards)}"
                )
        self._publish_models()
        log.info(
            "ready: %s on %s",
            ", ".join(self.service.registry.cards),
            self.service.registry.provider,
        )

    async def stop(self) -> None:
        """Refuse new requests and finish those in flight, within the shutdown timeout."""
        self.starting.cancel()
        await asyncio.wait({self.starting})
        await self.service.stop(0 if self.service.fault() else self.settings.shutdown_timeout)

    def report(self, *, listening: bool) -> None:
        """Write to the process table that the event loop runs, and what it serves."""
        self.slot.heartbeat = now = time.monotonic()
        self.slot.models = int(self.service.registry.version[:12], 16)
        self.slot.ready = listening and self.service.ready() is None
        if self.slot.ready and not self.slot.ready_since:
            self.slot.ready_since = now

    async def reload(self) -> Reloaded:
        """Reload the bundles and the certificate in every serving process; returns what this one did.

        Raises Unavailable when this one cannot.
        """
        self.slot.reloads_asked += 1
        asked = self.slot.table.reloads_asked
        here = asyncio.create_task(self.reload_here())
        await asyncio.wait({here})
        await self._until_reloaded(asked)
        return here.result()

    async def _until_reloaded(self, asked: int) -> None:
        """Until every process has done the first `asked` reloads, or RELOAD_SECONDS have passed."""
        with suppress(TimeoutError):
            async with asyncio.timeout(RELOAD_SECONDS):
                while not self.slot.table.reloaded(asked):
                    await asyncio.sleep(0.05)

    @property
    def reload_is_asked(self) -> bool:
        """Whether another process, or SIGHUP, has asked for a reload that this process has not begun."""
        return (
            self.slot.reloads_done < self.slot.table.reloads_asked and not self._reloading.locked()
        )

    async def reload_here(self) -> Reloaded:
        """Do every reload that has been asked for until now, in this process. Raises Unavailable."""
        async with self._reloading:
            asked = self.slot.table.reloads_asked
            try:
                if self.tls:
                    reload_certificate(self.tls, self.settings)
                result = await self.service.reload()
            except Unavailable:
                raise  # not started, or shutting down
            except Exception as error:
                log.exception("the reload failed, the models served before stay")
                raise Unavailable("the models could not be loaded: the log says why") from error
            finally:
                self.slot.reloads_done = asked
            self._publish_models()
        if self.slot.table.ready()[:1] in (
            [],
            [self.slot],
        ):  # one process for all, when all have done it
            await self._until_reloaded(asked)
            self._record_reload(result)
        return result

    def _record_reload(self, result: Reloaded) -> None:
        """Count and log a reload, once for all processes."""
        self.metrics.reloads["refused" if result.refused else "ok"].inc()
        for reason in result.refused:
            log.error("bundle refused, the model served before stays: %s", reason)
        log.info("reloaded: %s new, %s removed", _names(result.loaded), _names(result.removed))

    def _publish_models(self) -> None:
        self.metrics.models(self.service.registry.cards.values(), self.service.registry.provider)
        self.metrics.golden(self.service.deviations)
        bare = tuple(name for name, moved in self.service.deviations.items() if moved is None)
        if bare:
            log.warning("no golden vectors, unchecked on this machine: %s", _names(bare))


def state_of(app: FastAPI) -> AppState:
    """The state that create_app has set."""
    state: AppState = app.state.heedful
    return state


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "none"

"""AppState: what the routes and the server of an application share."""

import asyncio
import logging
import ssl
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fastapi import FastAPI

from heedful.app.http.auth import Keys
from heedful.app.http.request_record import Deadlines
from heedful.app.http.tls import reload_certificate
from heedful.app.observability.metrics import Metrics
from heedful.app.process.table import Slot
from heedful.app.settings import Settings
from heedful.runtime.errors import StartupError, Unavailable
from heedful.runtime.service import Reloaded, Service

if TYPE_CHECKING:  # it imports state_of
    from heedful.app.http.protocol import Protocol

log = logging.getLogger("heedful.server")

RELOAD_SECONDS = 60.0
"""How long a reload waits for the other serving processes."""


@dataclass(slots=True)
class AppState:
    """An application's settings, service and metrics; starts, stops and reloads the service."""

    settings: Settings
    service: Service
    metrics: Metrics
    slot: Slot
    """This process's slot in the table of those behind the port."""
    max_connections: int
    """The limit of this process."""
    keys: Keys
    preloaded: bool = False
    """Whether the service was created with its models, which the parent has loaded."""
    deadlines: Deadlines = field(default_factory=Deadlines)
    """The time limits of the requests in progress."""
    waiting: dict["Protocol", None] = field(default_factory=dict)
    """Connections without a request in progress, the oldest first."""
    tls: ssl.SSLContext | None = None
    """The server's TLS context; None without TLS."""
    starting: asyncio.Task[None] = field(init=False)
    """Loads the models; holds the StartupError when they do not load."""

    _reloading: asyncio.Lock = field(default_factory=asyncio.Lock)

    def start(self) -> None:
        """Begin to load the models."""
        self.starting = asyncio.create_task(self._load())

    async def _load(self) -> None:
        requested = 0 if self.preloaded else self.slot.table.reloads_requested
        await self.service.start()
        self.slot.reloads_done = requested
        for alias, name in self.settings.aliases.items():
            if alias in self.service.registry.cards:
                raise StartupError(
                    f"HEEDFUL_ALIASES: {alias}={name}: {alias} is the name of a model, which an "
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
        """Write to the process table that the event loop runs, the models, and whether they are served."""
        self.slot.heartbeat = now = time.monotonic()
        self.slot.models = int(self.service.registry.version[:12], 16)
        self.slot.ready = listening and self.service.ready() is None
        if self.slot.ready and not self.slot.ready_since:
            self.slot.ready_since = now

    async def reload(self) -> Reloaded:
        """Reload the bundles and the certificate in all serving processes; returns this process's result.

        Raises Unavailable when this process cannot reload.
        """
        self.slot.reloads_requested += 1
        requested = self.slot.table.reloads_requested
        task = asyncio.create_task(self.reload_here())
        await asyncio.wait({task})
        await self._until_reloaded(requested)
        return task.result()

    async def _until_reloaded(self, requested: int) -> None:
        """Wait until all processes have done the first `requested` reloads, for RELOAD_SECONDS at most."""
        with suppress(TimeoutError):
            async with asyncio.timeout(RELOAD_SECONDS):
                while not self.slot.table.reloaded(requested):
                    await asyncio.sleep(0.05)

    @property
    def reload_is_requested(self) -> bool:
        """Whether another process, or SIGHUP, has requested a reload that this process has not begun."""
        return (
            self.slot.reloads_done < self.slot.table.reloads_requested
            and not self._reloading.locked()
        )

    async def reload_here(self) -> Reloaded:
        """Do the reloads that are requested until now, in this process. Raises Unavailable."""
        async with self._reloading:
            requested = self.slot.table.reloads_requested
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
                self.slot.reloads_done = requested
            self._publish_models()
        # The first process that is ready reports the reload, when all have done it.
        if self.slot.table.ready()[:1] in ([], [self.slot]):
            await self._until_reloaded(requested)
            self.metrics.reloads["refused" if result.refused else "ok"].inc()
            for reason in result.refused:
                log.error("bundle refused, the model served before stays: %s", reason)
            log.info("reloaded: %s new, %s removed", _names(result.loaded), _names(result.removed))
        return result

    def _publish_models(self) -> None:
        self.metrics.models(self.service.registry.cards.values(), self.service.registry.provider)
        self.metrics.golden(self.service.deviations)
        unchecked = tuple(
            name for name, deviation in self.service.deviations.items() if deviation is None
        )
        if unchecked:
            log.warning("no golden vectors, unchecked on this machine: %s", _names(unchecked))


def state_of(app: FastAPI) -> AppState:
    """The state that create_app has set."""
    state: AppState = app.state.heedful
    return state


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "none"

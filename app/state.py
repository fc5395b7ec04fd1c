"""AppState: everything that the routes and the server of one application share."""

import asyncio
import logging
import ssl
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Protocol

from fastapi import FastAPI

from heedful.app.http.auth import Keys
from heedful.app.http.large_bodies import LargeBodies
from heedful.app.http.tls import reload_certificate
from heedful.app.observability.metrics import Metrics
from heedful.app.settings import Settings
from heedful.runtime.errors import StartupError
from heedful.runtime.service import Reloaded, Service

log = logging.getLogger("heedful.server")


class Connection(Protocol):
    """A client's connection."""

    def give_way(self, limit: str) -> None:
        """Close it, which has no request in progress, for this limit's sake."""


class Peers(Protocol):
    """The other serving processes behind the same port."""

    def status(self) -> str | None:
        """None when every process is ready, otherwise why not."""

    async def reload(self) -> Reloaded:
        """Reload the bundles in every process. Raises Unavailable when none can."""


@dataclass(slots=True)
class AppState:
    """One application's settings, service and metrics, and the service's life."""

    settings: Settings
    service: Service
    metrics: Metrics
    created: int
    """Start of the service, in seconds since the epoch."""
    max_connections: int
    """This process's limit."""
    keys: Keys
    peers: Peers | None = None
    """None when this is the only serving process."""
    waiting: dict[Connection, None] = field(default_factory=dict)
    """Connections without a request in progress, the oldest first."""
    running: Collection[object] = ()
    """The server's tasks, one for each request in progress; empty where no server of ours runs the application."""
    large: LargeBodies = field(init=False)
    """Reads large bodies."""
    tls: ssl.SSLContext | None = None
    """What the server encrypts with; None where it does not."""
    starting: asyncio.Task[None] = field(init=False)
    """Loads the models; holds the StartupError when they do not load."""

    def __post_init__(self) -> None:
        self.large = LargeBodies(self.service.trim_later)

    def peer_status(self) -> str | None:
        """None when every serving process is ready, otherwise why not."""
        return self.peers.status() if self.peers else None

    def start(self) -> None:
        """Begin to load the models."""
        self.starting = asyncio.create_task(self._load())

    def real_name(self, model: str | None) -> str | None:
        """The model that a name or an alias means. A loaded model's name is no alias."""
        if model is None or model in self.service.cards:
            return model
        return self.settings.aliases.get(model, model)

    async def _load(self) -> None:
        await self.service.start()
        for alias, name in self.settings.aliases.items():
            if alias in self.service.cards:
                raise StartupError(
                    f"HEEDFUL_ALIASES: {alias}={name}: {alias} is a model's own name, which an "
                    "alias cannot change: leave it out"
                )
            if name not in self.service.cards:
                raise StartupError(
                    f"HEEDFUL_ALIASES: {alias}={name}: there is no model {name}; "
                    f"known are: {', '.join(self.service.cards)}"
                )
        self._publish_models()
        log.info("ready: %s on %s", ", ".join(self.service.cards), self.service.provider)

    async def stop(self) -> None:
        """Refuse new requests and finish those in flight, within the shutdown timeout."""
        self.starting.cancel()
        await asyncio.wait({self.starting})
        await self.service.stop(0 if self.service.fault() else self.settings.shutdown_timeout)

    async def reload(self) -> Reloaded:
        """Reload the bundles and the certificate in every serving process, then count and log the result."""
        if self.peers:
            return await self.peers.reload()
        result = await self.reload_here()
        self.record_reload(result)
        return result

    async def reload_here(self) -> Reloaded:
        """Reload the bundles and the certificate in this process alone."""
        if self.tls:
            reload_certificate(self.tls, self.settings)
        result = await self.service.reload()
        self._publish_models()
        return result

    def record_reload(self, result: Reloaded) -> None:
        """Count and log a reload, once for all processes."""
        self.metrics.reload(refused=bool(result.refused))
        for reason in result.refused:
            log.error("bundle refused, the model served before stays: %s", reason)
        log.info("reloaded: %s new, %s removed", _names(result.loaded), _names(result.removed))

    def _publish_models(self) -> None:
        self.metrics.models(self.service.cards.values(), self.service.provider)
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

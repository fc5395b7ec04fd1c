"""A process that serves, from its start to the last answer after SIGTERM."""

import asyncio
import contextlib
import signal
import socket
from collections.abc import Coroutine
from typing import Any

import uvicorn
from fastapi import FastAPI

from heedful.app.protocol import Protocol
from heedful.runtime.errors import ServiceFault, Unavailable
from heedful.runtime.memory import freeze_gc

LAST_WRITES = 5
"""Seconds after the grace time for answers to leave; who does not read is dropped then."""


class Server(uvicorn.Server):
    """uvicorn's, which ends when the models cannot be loaded, and drains before it closes."""

    app: FastAPI

    def __init__(self, app: FastAPI) -> None:
        super().__init__(config(app))
        self.app = app
        self._fault: ServiceFault | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.heed_hang_up()
        self.app.state.starting.add_done_callback(lambda _: freeze_gc())

    def heed_hang_up(self) -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._hang_up)

    def _hang_up(self) -> None:
        """SIGHUP: read the bundles anew."""
        self.keep(self._reload())

    async def _reload(self) -> None:
        with contextlib.suppress(Unavailable):  # it is ending
            await self.app.state.reload()

    def keep(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run it beside; the event loop by itself would let it be collected."""
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def on_tick(self, counter: int) -> bool:
        return await super().on_tick(counter) or self.failure() is not None

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Refuse new work with 503 and answer what is in hand; only then close the sockets."""
        await self.app.state.stop()
        self.leave()
        await super().shutdown(sockets)

    def leave(self) -> None:
        """No connection is served from now on but those there are."""

    def failure(self) -> BaseException | None:
        """What stopped the models from loading, or the service from going on."""
        if self._fault is None and (reason := self.app.state.service.fault()):
            self._fault = ServiceFault(reason)
        starting = self.app.state.starting
        failed = starting.exception() if starting.done() and not starting.cancelled() else None
        return failed or self._fault


def config(app: FastAPI) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=Protocol,
        log_config=None,
        access_log=False,
        proxy_headers=False,  # nothing here asks who the client is
        ws="none",
        server_header=False,
        timeout_graceful_shutdown=LAST_WRITES,
    )

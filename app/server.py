"""A process that serves, from its start to the last answer after SIGTERM."""

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app import errors
from runtime.errors import ServiceFault, Unavailable
from runtime.memory import settle

LAST_WRITES = 5
"""Seconds after the grace time for answers to leave; who does not read is dropped then."""


class Server(uvicorn.Server):
    """uvicorn's, which ends when the models cannot be loaded, and drains before it closes."""

    app: FastAPI

    def __init__(self, app: FastAPI) -> None:
        super().__init__(config(app))
        self.app = app
        self._fault: ServiceFault | None = None
        self._reloads: set[asyncio.Task[None]] = set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.heed_hang_up()
        self.app.state.starting.add_done_callback(lambda _: settle())

    def heed_hang_up(self) -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._hang_up)

    def _hang_up(self) -> None:
        """SIGHUP: read the bundles anew."""
        task = asyncio.create_task(self._reload())
        self._reloads.add(task)
        task.add_done_callback(self._reloads.discard)

    async def _reload(self) -> None:
        with contextlib.suppress(Unavailable):  # it is ending
            await self.app.state.reload()

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


class Protocol(HttpToolsProtocol):
    """uvicorn's, with the envelope for what is no HTTP: no application ever sees that."""

    closed: Callable[[], None] | None = None
    """Called when the connection is over."""

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self.closed:
            self.closed()

    def send_400_response(self, msg: str) -> None:
        body = errors.envelope(errors.MalformedHTTP(msg))
        head = (
            "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()


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

"""serve: settings -> a listening process, from the socket to the last answer after SIGTERM."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from typing import NoReturn

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app import errors, logs
from app.main import create_app
from app.settings import Settings, environment_name
from runtime.errors import ServiceFault, StartupError, Unavailable
from runtime.memory import settle

log = logging.getLogger("heedful.server")

LAST_WRITES = 5
"""Seconds after the grace time for answers to leave; who does not read is dropped then."""


class Server(uvicorn.Server):
    """uvicorn's, which ends when the models cannot be loaded, and drains before it closes."""

    app: FastAPI

    def __init__(self, app: FastAPI, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.app = app
        self._fault: ServiceFault | None = None
        self._reloads: set[asyncio.Task[None]] = set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._hang_up)
        self.app.state.starting.add_done_callback(lambda _: settle())

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
        await super().shutdown(sockets)

    def failure(self) -> BaseException | None:
        """What stopped the models from loading, or the service from going on."""
        if self._fault is None and (reason := self.app.state.service.fault()):
            self._fault = ServiceFault(reason)
        starting = self.app.state.starting
        failed = starting.exception() if starting.done() and not starting.cancelled() else None
        return failed or self._fault


class Protocol(HttpToolsProtocol):
    """uvicorn's, with the envelope for what is no HTTP: no application ever sees that."""

    def send_400_response(self, msg: str) -> None:
        body = errors.envelope(errors.MalformedHTTP(msg))
        head = (
            "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()


def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT. Raises StartupError where it cannot start.

    Ends the process with status 1 where the service cannot go on: to start it anew, later and later
    where that does not help, is what its manager is for.
    """
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until there is something to load anew
    app = create_app(settings)
    listener = listen(settings.host, settings.port)
    logs.configure(settings.log_format)
    config = uvicorn.Config(
        app,
        http=Protocol,
        log_config=None,
        access_log=False,
        proxy_headers=False,  # nothing here asks who the client is
        ws="none",
        server_header=False,
        timeout_graceful_shutdown=LAST_WRITES,
    )
    server = Server(app, config)
    log.info("listening on http://%s:%d", settings.host, listener.getsockname()[1])
    # uvicorn raises the signal again when it is done: end with 0 then, not by the signal.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _exit)
    server.run([listener])
    failure = server.failure()
    if isinstance(failure, ServiceFault):
        log.critical("ending, to be started anew: %s", failure)
        logging.shutdown()
        os._exit(1)  # a thread that hangs would keep the process
    if failure:
        raise failure


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. Raises StartupError where the address cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        reason = f"cannot listen on {host}:{port}: {error.strerror}"
        remedy = f"set another {environment_name('port')} or {environment_name('host')}"
        raise StartupError(f"{reason}; {remedy}") from error


def _exit(*_: object) -> NoReturn:
    sys.exit(0)

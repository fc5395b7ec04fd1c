"""A serving process, from its start to the last answer after SIGTERM."""

import asyncio
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, cast

import uvicorn
from fastapi import FastAPI

from heedful.app.http.protocol import Protocol
from heedful.app.observability import logs
from heedful.app.state import state_of
from heedful.runtime.errors import ServiceFault, StartupError, Unavailable
from heedful.runtime.memory import freeze_gc

log = logging.getLogger("heedful.server")

FLUSH_TIMEOUT = 2
"""Seconds after the shutdown timeout to send answers; then slow clients are dropped."""
KILL_TIMEOUT = 3
"""Seconds after the shutdown timeout until a process that hangs is killed."""
BEAT_SECONDS = 1.0
CHECK_TICKS = 3
"""Tenths of a second between two checks of the connections' time limits."""


class Server(uvicorn.Server):
    """A uvicorn server that ends when the models do not load, and answers open requests before it closes."""

    def __init__(
        self, app: FastAPI, listen: Callable[[], socket.socket], *, at_once: bool = False
    ) -> None:
        """`listen` opens the socket when the models are loaded; `at_once`, at the start."""
        self._state = state_of(app)
        settings = self._state.settings
        super().__init__(
            uvicorn.Config(
                app,
                http=Protocol,
                log_config=None,
                access_log=False,
                proxy_headers=False,  # nothing here needs the client's address
                ws="none",
                server_header=False,
                ssl_certfile=settings.tls_cert,
                ssl_keyfile=settings.tls_key,
                timeout_graceful_shutdown=FLUSH_TIMEOUT,
            )
        )
        self._listen, self._at_once = listen, at_once
        self._fault: StartupError | ServiceFault | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:  # noqa: ARG002  # uvicorn's signature
        logs.write_in_thread(self._state.metrics.lines_dropped[()].inc)
        await super().startup([])
        self._state.tls = self.config.ssl
        if self._at_once:
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._on_sighup)
            await self._open()
        else:
            self.spawn(self._open_when_ready())
        self._state.starting.add_done_callback(lambda _: freeze_gc())
        self._beat()

    async def _open(self) -> None:
        listener, loop = self._listen(), asyncio.get_running_loop()
        is_file = listener.family == socket.AF_UNIX
        # uvicorn would give a TLS handshake a minute.
        handshake_timeout = self._state.settings.head_timeout if self.config.ssl else None
        server = await (loop.create_unix_server if is_file else loop.create_server)(
            lambda: Protocol(self.config, self.server_state, self.lifespan.state),
            sock=listener,
            ssl=self.config.ssl,
            ssl_handshake_timeout=handshake_timeout,
            backlog=self.config.backlog,
        )
        self.servers.append(server)

    async def _open_when_ready(self) -> None:
        """Listen once this process has the models that the others serve, so that no client waits for them."""
        state = self._state
        await asyncio.wait({state.starting})
        if self.failure() or self.should_exit:
            return
        state.report(listening=False)
        try:
            with suppress(Unavailable):
                if any(other.models != state.slot.models for other in state.slot.table.ready()):
                    log.warning("this process has loaded other models: all reload")
                    await state.reload()
                elif state.reload_is_requested:
                    await state.reload_here()
            if not self.should_exit:
                await self._open()
        except StartupError as error:
            self._fault = error
        state.report(listening=bool(self.servers))

    def _on_sighup(self) -> None:
        self._state.slot.reloads_requested += 1

    def _beat(self) -> None:
        """Tell the parent every second that the event loop runs, also while requests are in progress after SIGTERM."""
        self._state.report(listening=bool(self.servers))
        if self.servers and self._state.reload_is_requested:
            self.spawn(self._reload())
        asyncio.get_running_loop().call_later(BEAT_SECONDS, self._beat)

    async def _reload(self) -> None:
        with suppress(Unavailable):  # shutting down; what failed is in the log
            await self._state.reload_here()

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run the coroutine as a task. The event loop holds only weak references to tasks."""
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def on_tick(self, counter: int) -> bool:
        if counter % CHECK_TICKS == 0:
            now = asyncio.get_running_loop().time()
            for connection in list(self.server_state.connections):
                cast(Protocol, connection).check_timeouts(now)
            metrics = self._state.metrics
            metrics.connections[()].set(len(self.server_state.connections))
            metrics.waiting(self._state.service.waiting)
        return await super().on_tick(counter) or self.failure() is not None

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Refuse new requests with 503, answer those in flight, then close the sockets."""
        timeout = self._state.settings.shutdown_timeout
        end = asyncio.get_running_loop().time() + timeout
        # The process would wait for a thread that never ends.
        watchdog = threading.Timer(timeout + KILL_TIMEOUT, _exit)
        watchdog.daemon = True
        watchdog.start()
        await self._end_connections()
        await self._state.stop()
        if not self.failure():
            with suppress(TimeoutError):
                async with asyncio.timeout_at(end):  # clients may still send and read
                    while running := self.server_state.tasks:
                        await asyncio.wait(running)
        await super().shutdown(sockets)

    async def _end_connections(self) -> None:
        """Close idle connections now and the others after their next answer: clients then connect elsewhere."""
        # A header of all answers from now on. Only `on_tick` sets these headers, and the main loop has ended.
        close = (b"connection", b"close")
        self.server_state.default_headers = [*self.server_state.default_headers, close]
        await asyncio.sleep(0)  # reads the requests that have arrived
        for connection in list(self.server_state.connections):
            cast(Protocol, connection).close_after_answer()

    def failure(self) -> BaseException | None:
        """Why the models did not load, or why the service cannot continue."""
        if self._fault is None and (reason := self._state.service.fault()):
            self._fault = ServiceFault(reason)
        starting = self._state.starting
        error = starting.exception() if starting.done() and not starting.cancelled() else None
        return error or self._fault


def _exit() -> None:
    log.critical("the shutdown takes too long: exiting with status 1")
    logging.shutdown()
    os._exit(1)

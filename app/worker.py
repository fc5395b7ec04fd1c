"""One serving process of several: its connections come from the supervisor, and reloads go through it."""

import asyncio
import contextlib
import logging
import socket
from typing import Any

from fastapi import FastAPI

from heedful.app.crew import NUMBER, Link
from heedful.app.protocol import Protocol
from heedful.app.server import Server
from heedful.runtime.errors import Unavailable
from heedful.runtime.service import Reloaded

log = logging.getLogger("heedful.server")


class Worker(Server):
    """A server that listens nowhere."""

    def __init__(self, app: FastAPI, link: Link) -> None:
        super().__init__(app)
        self._link = link
        app.state.reload = self._reload_all
        app.state.company = self._company
        self._is_ready = False
        self._ready, self._wanted = 0, 1
        self._asked: list[asyncio.Future[Reloaded]] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        loop = asyncio.get_running_loop()
        loop.add_reader(self._link.connections.fileno(), self._take)
        loop.add_reader(self._link.words.fileno(), self._hear)
        self.app.state.starting.add_done_callback(self._tell_ready)

    def heed_hang_up(self) -> None:
        """The supervisor does, for all."""

    def leave(self) -> None:
        asyncio.get_running_loop().remove_reader(self._link.connections.fileno())
        self._say("leaving", None)

    async def on_tick(self, counter: int) -> bool:
        self._tell_ready()
        return await super().on_tick(counter)

    def _tell_ready(self, *_: object) -> None:
        """Say it when this process becomes ready, and when it is not any more."""
        ready = self.app.state.service.ready() is None
        if ready != self._is_ready:
            self._is_ready = ready
            self._say("ready", ready)

    def _take(self) -> None:
        """Serve the connections that were handed over."""
        with contextlib.suppress(BlockingIOError):
            while True:
                number, handles, _, _ = socket.recv_fds(self._link.connections, NUMBER, 1)
                if not number:  # the supervisor is gone
                    asyncio.get_running_loop().remove_reader(self._link.connections.fileno())
                    return
                for handle in handles:
                    connection = socket.socket(fileno=handle)
                    connection.setblocking(False)
                    self.keep(self._adopt(connection, int.from_bytes(number)))

    async def _adopt(self, connection: socket.socket, number: int) -> None:
        def closed() -> None:
            self._say("closed", number)

        def sending(going: bool) -> None:
            self._say("sending", (number, going))

        def protocol() -> asyncio.Protocol:
            made = Protocol(self.config, self.server_state, self.lifespan.state)
            made.closed, made.sending = closed, sending
            return made

        try:
            await asyncio.get_running_loop().connect_accepted_socket(protocol, connection)
        except OSError:  # the client has gone
            closed()

    def _hear(self) -> None:
        """What the supervisor says."""
        try:
            word, value = self._link.words.recv()
        except (EOFError, OSError):
            log.error("the supervisor has died: ending")
            asyncio.get_running_loop().remove_reader(self._link.words.fileno())
            self.should_exit = True
            return
        if word == "company":
            self._ready, self._wanted = value
        elif word == "reload":
            self.keep(self._reload_here())
        elif word == "tell":
            self.app.state.tell(value)
        elif word == "reloaded":
            asked = self._asked.pop(0)
            if asked.done():
                return  # who asked has gone
            if value:
                asked.set_result(value)
            else:
                asked.set_exception(Unavailable("no serving process can load models now"))

    async def _reload_here(self) -> None:
        done = None
        with contextlib.suppress(Unavailable):  # it is ending
            done = await self.app.state.reload_here()
        self._say("reloaded", done)

    async def _reload_all(self) -> Reloaded:
        """Ask the supervisor for a reload by every process. Raises Unavailable where none can."""
        asked: asyncio.Future[Reloaded] = asyncio.get_running_loop().create_future()
        self._asked.append(asked)
        self._say("reload", None)
        return await asked

    def _company(self) -> str | None:
        """None where every serving process is ready, else how many are."""
        if self._ready >= self._wanted:
            return None
        return f"{self._ready} of {self._wanted} serving processes are up"

    def _say(self, word: str, value: Any) -> None:
        with contextlib.suppress(OSError):  # `_hear` sees that it has died
            self._link.words.send((word, value))

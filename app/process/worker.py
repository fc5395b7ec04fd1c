"""One of several serving processes: it gets connections and control messages from the supervisor."""

import asyncio
import contextlib
import logging
import socket
import time

from fastapi import FastAPI

from heedful.app.http.protocol import Protocol
from heedful.app.process import messages
from heedful.app.process.reload_queue import shortened
from heedful.app.process.server import Server
from heedful.app.process.worker_group import CONNECTION_ID_BYTES, Link, WorkerGroup
from heedful.app.state import state_of
from heedful.runtime.errors import Unavailable
from heedful.runtime.service import Reloaded

log = logging.getLogger("heedful.server")

REPORT_SECONDS = 0.1
"""Between two looks at whether the supervisor has something to be told."""


class SupervisedPeers:
    """The other serving processes, reached through the supervisor."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._last = messages.PeerStatus(ready=0, wanted=1)
        self._waiting: list[asyncio.Future[Reloaded]] = []

    def status(self) -> str | None:
        """None when every serving process is ready, otherwise how many are."""
        if self._last.ready >= self._last.wanted:
            return None
        return f"{self._last.ready} of {self._last.wanted} serving processes are up"

    async def reload(self) -> Reloaded:
        """Reload the bundles in every process. Raises Unavailable when none can."""
        finished: asyncio.Future[Reloaded] = asyncio.get_running_loop().create_future()
        self._waiting.append(finished)
        self._link.send(messages.ReloadRequest())
        return await finished

    def update(self, status: messages.PeerStatus) -> None:
        self._last = status

    def reload_finished(self, result: Reloaded | None) -> None:
        """Answer the oldest `reload`."""
        finished = self._waiting.pop(0)
        if finished.done():
            return  # its client has gone
        if result:
            finished.set_result(result)
        else:
            finished.set_exception(
                Unavailable("no serving process could load the models: its log says why")
            )


class Worker(Server):
    """A server without a listening socket."""

    def __init__(
        self, app: FastAPI, group: WorkerGroup, link: Link, peers: SupervisedPeers
    ) -> None:
        super().__init__(app)
        self._states = group.states
        self._link = link
        self._peers = peers
        self._alive: messages.Alive | None = None
        self._told = 0.0  # when `_alive` was sent
        self._interval = min(1.0, state_of(app).settings.hang_timeout / 15)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        loop = asyncio.get_running_loop()
        loop.add_reader(self._link.connections.fileno(), self._accept)
        loop.add_reader(self._link.control.fileno(), self._receive)
        state_of(self.app).starting.add_done_callback(self._report_alive)
        self.spawn(self._keep_reporting())

    def handle_sighup(self) -> None:
        """The supervisor handles it for all processes."""

    def leave(self) -> None:
        asyncio.get_running_loop().remove_reader(self._link.connections.fileno())
        self._link.send(messages.Leaving())

    async def _keep_reporting(self) -> None:
        """Until the event loop ends: requests may be in progress long after SIGTERM."""
        while True:
            self._report_alive()
            await asyncio.sleep(REPORT_SECONDS)

    def _report_alive(self, *_: object) -> None:
        """Tell the supervisor every second that the event loop runs, and whether it can answer."""
        now = time.monotonic()
        service = state_of(self.app).service
        alive = messages.Alive(service.ready() is None, service.version)
        if alive != self._alive or now - self._told >= self._interval:
            self._alive, self._told = alive, now
            self._link.send(alive)

    def _accept(self) -> None:
        """Serve the connections that the supervisor has passed on."""
        with contextlib.suppress(BlockingIOError):
            while True:
                sent, handles, _, _ = socket.recv_fds(
                    self._link.connections, CONNECTION_ID_BYTES, 1
                )
                number = int.from_bytes(sent)
                if not handles:  # the system drops them when this process has no descriptor left
                    self._link.send(messages.ConnectionLost(number))
                for handle in handles:
                    connection = socket.socket(fileno=handle)
                    connection.setblocking(False)
                    self.spawn(self._adopt(connection, number))

    async def _adopt(self, connection: socket.socket, number: int) -> None:
        def closed() -> None:
            self._link.send(messages.ConnectionClosed(number))

        def set_state(state: int) -> None:
            self._states[number] = state

        def protocol() -> Protocol:
            made = self.protocol()
            made.closed, made.set_state = closed, set_state
            made.received = self._states[number]  # by a process that has died
            return made

        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                protocol,
                connection,
                ssl=self.config.ssl,
                ssl_handshake_timeout=self.handshake_timeout(),
            )
        except OSError:  # the client has gone
            closed()

    def _receive(self) -> None:
        """Handle the control messages that have come."""
        while (message := self._link.receive()) is not None:
            match message:
                case messages.PeerStatus():
                    self._peers.update(message)
                case messages.ReloadNow():
                    self.spawn(self._reload_here())
                case messages.ReloadFinished(result, requested):
                    if result:
                        state_of(self.app).record_reload(result)
                    if requested:
                        self._peers.reload_finished(result)

    async def _reload_here(self) -> None:
        """Reload the bundles, and tell the supervisor, which waits for it."""
        result = None
        try:
            result = shortened(await state_of(self.app).reload_here())
        except Unavailable:
            pass  # shutting down
        except Exception:
            log.exception("the reload failed, the models served before stay")
        finally:
            self._link.send(messages.WorkerReloaded(result))

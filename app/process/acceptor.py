"""Accepting connections, and passing each to the next serving process. Nothing here blocks or raises."""

import errno
import logging
import selectors
import socket
import time
from collections import Counter, deque

from heedful.app.errors import TooManyConnections
from heedful.app.observability.metrics import Metrics
from heedful.app.process.refusals import Refusals
from heedful.app.process.worker_group import CONNECTION_ID_BYTES, WorkerGroup, WorkerProcess
from heedful.app.settings import Settings
from heedful.runtime.errors import Unavailable

log = logging.getLogger("heedful.supervisor")

PASS_TIMEOUT_SECONDS = 5.0
"""A connection that no process accepts for this long is refused."""
RETRY_SECONDS = 0.02
NO_DESCRIPTOR = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
NO_DESCRIPTOR_SECONDS = 0.1
"""How long the listener rests when the system has no descriptor; clients wait in its backlog."""
FULL = (errno.EAGAIN, errno.ETOOMANYREFS)
"""The process has not read earlier connections yet."""


class Acceptor:
    """Passes connections to `processes`, which the supervisor changes."""

    def __init__(
        self,
        listener: socket.socket,
        selector: selectors.BaseSelector,
        processes: deque[WorkerProcess],
        group: WorkerGroup,
        refusals: Refusals,
        settings: Settings,
        metrics: Metrics,
    ) -> None:
        self._listener = listener
        self._selector = selector
        self._processes = processes
        self._states = group.states
        self._refusals = refusals
        self._per_address = settings.max_connections_per_address
        self._metrics = metrics
        self._addresses: dict[int, str] = {}  # of each open connection, if they are limited
        self._open: Counter[str] = Counter()
        self._held: tuple[socket.socket, float] | None = None  # until when it is kept for a process
        self._resume_at: float | None = None
        self.ending = False

    def start(self) -> None:
        self._listener.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)

    def stop(self) -> None:
        """Accept no more."""
        if self._resume_at is None:
            self._selector.unregister(self._listener)
        elif self._held:
            self._refuse(self._held[0])
        self._held = self._resume_at = None

    def close_in_child(self) -> None:
        """Close a forked child's copies; the supervisor keeps its own."""
        self._listener.close()
        if self._held:
            self._held[0].close()

    def deadline(self) -> float | None:
        """When `poll` has something to do."""
        return self._resume_at

    def poll(self, now: float) -> None:
        """Continue after a pause."""
        if self._resume_at is None or now < self._resume_at:
            return
        self._resume_at = None
        if self._held:
            (connection, until), self._held = self._held, None
            self._dispatch(connection, until)
        if self._resume_at is None:
            self._selector.register(self._listener, selectors.EVENT_READ, self._accept)

    def released(self, number: int) -> None:
        """This connection is over."""
        if address := self._addresses.pop(number, None):
            self._open[address] -= 1
            if not self._open[address]:
                del self._open[address]

    def _rest(self, seconds: float) -> None:
        if self._listener in self._selector.get_map():
            self._selector.unregister(self._listener)
        self._resume_at = time.monotonic() + seconds

    def _accept(self, listener: socket.socket) -> None:
        while self._resume_at is None:
            try:
                connection, address = listener.accept()
            except OSError as error:
                if error.errno in NO_DESCRIPTOR:
                    log.warning("cannot accept connections now: %s", error.strerror)
                    self._metrics.limit("descriptors")
                    self._rest(NO_DESCRIPTOR_SECONDS)
                return  # else there is none, or its client has gone
            if self._may_open(connection, address[0]):
                self._states[connection.fileno()] = 0  # bytes read of it
                self._dispatch(connection, time.monotonic() + PASS_TIMEOUT_SECONDS)

    def _may_open(self, connection: socket.socket, address: str) -> bool:
        """Count the connection for its address, or refuse it."""
        if self._per_address is None:
            return True
        if self._open[address] >= self._per_address:
            self._metrics.limit("max_connections_per_address")
            reason = f"{self._per_address} connections of this address are open: close one first"
            self._refusals.add(connection, TooManyConnections(reason, retry_after=1))
            return False
        self._open[address] += 1
        self._addresses[connection.fileno()] = address
        return True

    def _dispatch(self, connection: socket.socket, until: float) -> None:
        """Pass the connection to the next process, keep it for a while, or refuse it."""
        passed, full = self._pass(connection)
        if passed:
            return
        if full and time.monotonic() < until:
            self._held = (connection, until)
            self._rest(RETRY_SECONDS)
        else:
            self._refuse(connection)

    def move(self, connection: socket.socket) -> bool:
        """Pass a connection of a process that has died to another one; whether one takes it."""
        passed, _ = self._pass(connection)
        return passed

    def _pass(self, connection: socket.socket) -> tuple[bool, bool]:
        """Whether the next process takes the connection, and if not, whether one may soon."""
        number = connection.fileno()
        staying = [each for each in self._processes if not each.leaving and not each.silent]
        full = False
        for process in [process for process in staying if process.ready] or staying:
            try:
                identity = number.to_bytes(CONNECTION_ID_BYTES)
                socket.send_fds(process.link.connections, [identity], [number])
            except OSError as error:
                full |= error.errno in FULL  # else it is dying
                continue
            process.connections[number] = connection
            self._processes.remove(process)
            self._processes.append(process)  # the last in turn for the next connection
            return True, False
        return False, full

    def _refuse(self, connection: socket.socket) -> None:
        self.released(connection.fileno())
        reason = "the service is shutting down" if self.ending else "no serving process answers now"
        self._refusals.add(connection, Unavailable(reason))

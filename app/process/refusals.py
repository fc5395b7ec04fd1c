"""Connections that the supervisor answers because no serving process can."""

import logging
import selectors
import socket
import time

from heedful.app import errors
from heedful.app.http import request_record
from heedful.app.observability import logs
from heedful.app.observability.metrics import Metrics
from heedful.runtime.errors import RequestError

log = logging.getLogger("heedful.access")

LINGER_SECONDS = 5.0
"""How long a refused client may take to read its answer."""
MAX_LINGERING = 256
"""When more refused clients linger, the first is closed at once."""


def answer(error: RequestError, request_id: str, metrics: Metrics) -> bytes:
    """A complete HTTP response of the error, for a request that no application sees. Counts and logs it."""
    status = errors.status_of(error)
    metrics.refused(status, error.code)
    named = {"route": "other", "status": status, "request_id": request_id}
    logs.info(log, "request", {**named, "refusal": error.code})
    return errors.raw_response(error, request_id)


class Refusals:
    """Answers each connection with an error, and closes it after its client does. Counts and logs the answers.

    Closing it earlier would reset a client that is still sending, which then loses the answer. With
    `tls` nothing is answered: only a serving process can encrypt.
    """

    def __init__(self, selector: selectors.BaseSelector, metrics: Metrics, *, tls: bool) -> None:
        self._selector = selector
        self._metrics = metrics
        self._tls = tls
        self._deadlines: dict[socket.socket, float] = {}  # the earliest first

    def __bool__(self) -> bool:
        return bool(self._deadlines)

    def deadline(self) -> float | None:
        """The earliest."""
        return next(iter(self._deadlines.values()), None)

    def add(self, connection: socket.socket, error: RequestError) -> None:
        if self._tls:
            connection.close()
            return
        connection.setblocking(False)
        if len(self._deadlines) >= MAX_LINGERING:
            self._close(next(iter(self._deadlines)))
        self._deadlines[connection] = time.monotonic() + LINGER_SECONDS
        self._selector.register(connection, selectors.EVENT_READ, self._drain)
        try:
            connection.send(answer(error, request_record.new_id(), self._metrics))
            connection.shutdown(socket.SHUT_WR)
        except OSError:  # the client has gone, or does not read
            self._close(connection)

    def close_expired(self, now: float) -> None:
        for connection in [each for each, until in self._deadlines.items() if until <= now]:
            self._close(connection)

    def close_in_child(self) -> None:
        """Close a forked child's copies; the supervisor keeps its own."""
        for connection in self._deadlines:
            connection.close()

    def _drain(self, connection: socket.socket) -> None:
        try:
            more = connection.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            more = b""
        if not more:
            self._close(connection)

    def _close(self, connection: socket.socket) -> None:
        self._deadlines.pop(connection)
        self._selector.unregister(connection)
        connection.close()

"""Connections that the supervisor answers with 503 because no serving process can."""

import selectors
import socket
import time

from heedful.app import errors
from heedful.runtime.errors import Unavailable

LINGER_SECONDS = 5.0
"""How long a refused client may take to read its answer."""


class Refusals:
    """Answers each connection with 503, and closes it after its client does.

    Closing it earlier would reset a client that is still sending, which then loses the answer.
    """

    def __init__(self, selector: selectors.BaseSelector) -> None:
        self._selector = selector
        self._deadlines: dict[socket.socket, float] = {}

    def __bool__(self) -> bool:
        return bool(self._deadlines)

    def deadlines(self) -> list[float]:
        return list(self._deadlines.values())

    def add(self, connection: socket.socket, reason: str) -> None:
        connection.setblocking(False)
        self._deadlines[connection] = time.monotonic() + LINGER_SECONDS
        self._selector.register(connection, selectors.EVENT_READ, self._drain)
        try:
            connection.send(errors.raw_response(Unavailable(reason)))
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

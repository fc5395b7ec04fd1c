"""A client's connection: uvicorn's HTTP, with the envelope for what is none, and answers sent whole."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from heedful.app import errors

_HEAD = b"HTTP/1.1 "


class Protocol(HttpToolsProtocol):
    """What is no HTTP no application ever sees: it is answered here."""

    closed: Callable[[], None] | None = None
    """Called when the connection is over."""
    sending: Callable[[bool], None] | None = None
    """Called when the system has not taken the whole of an answer, and when it has."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        transport.set_write_buffer_limits(high=0)
        super().connection_made(cast(asyncio.Transport, Joining(transport)))

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self.closed:
            self.closed()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self.sending:
            self.sending(True)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self.sending:
            self.sending(False)

    def send_400_response(self, msg: str) -> None:
        self.transport.write(errors.spoken(errors.MalformedHTTP(msg)))
        self.transport.close()


class Joining:
    """A transport that sends the head of an answer together with its body, which uvicorn writes next.

    One call of the system instead of two; and a process that is killed between them has sent nothing,
    so that the client can still be told.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head: bytes | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if self._head is not None:
            head, self._head = self._head, None
            self._transport.writelines([head, data])
        elif data.startswith(_HEAD):
            self._head = data
            asyncio.get_running_loop().call_soon(self._flush)  # where no body follows at once
        else:
            self._transport.write(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._head is not None:
            head, self._head = self._head, None
            self._transport.write(head)

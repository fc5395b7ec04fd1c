"""A client connection: uvicorn's HTTP protocol with our error envelope, and answers sent in one piece."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from heedful.app import errors

_HEAD = b"HTTP/1.1 "


class Protocol(HttpToolsProtocol):
    """Answers malformed HTTP before it reaches the application."""

    closed: Callable[[], None] | None = None
    """Called when the connection is over."""
    answer_pending: Callable[[bool], None] | None = None
    """Called when part of an answer is still unsent, and again when all is sent."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        transport.set_write_buffer_limits(high=0)
        super().connection_made(cast(asyncio.Transport, HeadBuffer(transport)))

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self.closed:
            self.closed()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self.answer_pending:
            self.answer_pending(True)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self.answer_pending:
            self.answer_pending(False)

    def send_400_response(self, msg: str) -> None:
        self.transport.write(errors.raw_response(errors.MalformedHTTP(msg)))
        self.transport.close()


class HeadBuffer:
    """A transport that holds the head of an answer back until uvicorn writes the body.

    That saves a system call. And a process killed between the two has sent nothing, so that the
    supervisor can still answer 503.
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
            asyncio.get_running_loop().call_soon(self._flush)  # when no body follows at once
        else:
            self._transport.write(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._head is not None:
            head, self._head = self._head, None
            self._transport.write(head)

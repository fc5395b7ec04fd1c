"""A client connection: uvicorn's HTTP protocol with limits, our error envelope, and answers sent in one piece."""

import asyncio
import logging
import math
from collections.abc import Callable
from typing import Any, cast

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from heedful.app import errors
from heedful.app.http import request_record
from heedful.app.observability import logs
from heedful.app.state import state_of
from heedful.runtime.errors import RequestError, Unavailable

log = logging.getLogger("heedful.access")

LINGER_SECONDS = 5.0
"""How long a refused client may take to read its answer."""
_HEAD = b"HTTP/1.1 "


class Protocol(HttpToolsProtocol):
    """Answers what breaks a limit or HTTP itself before it reaches the application.

    A connection without a request in progress is in the server's `waiting`, the oldest first.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        state = state_of(cast(Any, config.app))
        self._settings, self._metrics = state.settings, state.metrics
        self._count = state.metrics.limit
        self.waiting, self._max_connections = state.waiting, state.max_connections
        self._deadline = self.loop.time() + self._settings.head_timeout
        self._limit = "head_timeout"  # the setting that gives the deadline
        self._unsent: tuple[int, float] | None = (
            None  # bytes of an answer, and since when that many
        )
        self._in_head = self._upgrading = False
        self._dropping = False  # what still comes from the client
        self._head_bytes = self._fed = 0

    # The connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(cast(asyncio.Transport, HeadBuffer(transport, self._linger)))
        # uvloop calls pause_writing, which needs what uvicorn sets above, as soon as a limit is reached: with TLS
        # a limit of 0 is reached by an empty buffer, which never resumes.
        encrypted = transport.get_extra_info("sslcontext") is not None
        transport.set_write_buffer_limits(high=1 if encrypted else 0)
        if len(self.connections) <= self._max_connections:
            self.waiting[self] = None
        elif self.waiting:  # the oldest of those without a request makes room
            self.waiting[self] = None
            next(iter(self.waiting)).give_way("max_connections")
        else:
            self._count("max_connections")
            self._refuse(Unavailable("too many connections are open: try again later"))

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.waiting.pop(self, None)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unsent = (self.transport.get_write_buffer_size(), self.loop.time())

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unsent = None

    # What is read

    def data_received(self, data: bytes) -> None:
        self._read(data)

    def _read(self, data: bytes) -> None:
        if self._dropping:
            return
        self._fed += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._go_on_without_upgrade(data[upgrade.args[0] :])
        except httptools.HttpParserError as error:
            cause = error.__context__
            reason = "the bytes received are not an HTTP request"
            if isinstance(error, httptools.HttpParserInvalidMethodError):
                reason += ": it begins with a method in capitals, such as GET or POST"
            malformed = errors.MalformedHTTP(reason)
            self._refuse(cause if isinstance(cause, RequestError) else malformed)
        else:
            if self._fed > self._settings.max_header_bytes + len(data):
                self._refuse(self._too_large("max_header_bytes"))

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._fed = self._head_bytes = 0
        self._in_head = True
        if self._limit == "idle_timeout":
            self._await("head_timeout")

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > self._settings.max_url_bytes:
            raise self._too_large("max_url_bytes")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_bytes += len(name) + len(value) + 4
        if self._head_bytes > self._settings.max_header_bytes:
            raise self._too_large("max_header_bytes")
        if self._in_head:  # trailers are dropped: nothing here reads them
            super().on_header(name, value)
            if len(self.headers) > self._settings.max_headers:
                raise self._too_large("max_headers")

    def on_headers_complete(self) -> None:
        method = self.parser.get_method()
        if self.parser.should_upgrade() and method != b"CONNECT":
            self._upgrading = True  # the head is read again, without this header
            return
        version, names = self.parser.get_http_version(), [name for name, _ in self.headers]
        if (hosts := names.count(b"host")) != 1 and version == "1.1":
            raise errors.MalformedHTTP(f"HTTP/1.1 wants one Host header, not {hosts}")
        if b"transfer-encoding" in names:
            self._check_codings()
        if version == "1.0":
            self.expect_100_continue = False  # such a client knows no interim answer
        self._in_head = False
        self._fed = self._head_bytes = 0
        self._deadline = math.inf
        self.waiting.pop(self, None)
        super().on_headers_complete()
        if method == b"CONNECT":
            self._dropping = True  # no tunnel is opened
            self.cycle.keep_alive = False

    def _check_codings(self) -> None:
        """Raises MalformedHTTP for other transfer codings than chunked."""
        codings = [v.strip().lower() for name, v in self.headers if name == b"transfer-encoding"]
        if codings != [b"chunked"]:
            raise errors.MalformedHTTP(
                "of Transfer-Encoding only chunked is read: name a compression in Content-Encoding"
            )

    def on_body(self, body: bytes) -> None:
        self._fed = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        if not self._upgrading:
            self._fed = 0
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """As uvicorn's, which sets a timer for the next request: `check_time` looks at the deadline of all."""
        self.server_state.total_requests += 1
        closing = self.transport.is_closing()
        if not closing:
            self.flow.resume_reading()
        if self.pipeline:
            if not closing:
                self._start_asgi_task(*self.pipeline.pop())
            return
        if not self._dropping:
            self._await("idle_timeout")
        if not closing:
            self.waiting[self] = None

    def _go_on_without_upgrade(self, rest: bytes) -> None:
        """Read the head again without `Upgrade`, which a server may ignore (RFC 9110, 7.8), then the body."""
        if not self._upgrading:
            return  # after CONNECT
        self._upgrading = False
        version = self.parser.get_http_version().encode()
        head = [self.parser.get_method() + b" " + self.url + b" HTTP/" + version]
        head += [name + b": " + value for name, value in self.headers if name != b"upgrade"]
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._read(b"\r\n".join(head) + b"\r\n\r\n" + rest)

    # Limits

    def _await(self, limit: str) -> None:
        """Start the time of a setting."""
        self._limit = limit
        self._deadline = self.loop.time() + float(getattr(self._settings, limit))

    def _too_large(self, limit: str) -> errors.HeadTooLarge:
        self._count(limit)
        most = getattr(self._settings, limit)
        if limit == "max_url_bytes":
            return errors.UrlTooLong(f"the URL is longer than {most} bytes: shorten it")
        what = "lines" if limit == "max_headers" else "bytes"
        return errors.HeadTooLarge(f"the headers hold more than {most} {what}: send fewer")

    def check_time(self, now: float) -> None:
        """End the connection if its client has taken longer than a setting allows."""
        if self._unsent is not None:
            size, since = self.transport.get_write_buffer_size(), self._unsent[1]
            if size < self._unsent[0]:
                self._unsent = (size, now)
            elif now - since >= self._settings.write_timeout:
                self._count("write_timeout")
                self.transport.abort()
        elif now >= self._deadline:
            self._expire()

    def _expire(self) -> None:
        if self._dropping or not self._in_head:
            self.give_way(self._limit)
        else:
            self._count(self._limit)
            limit = self._settings.head_timeout
            self._refuse(errors.HeadTooSlow(f"no complete head within {limit:g} s"))

    def give_way(self, limit: str) -> None:
        """Close the connection, which has no request in progress, for this limit's sake."""
        self._count(limit)
        self._deadline = math.inf
        self.waiting.pop(self, None)
        self.transport.close()

    def end(self) -> None:
        """Close the connection after the request in progress. Without one, close it now, or after its first."""
        if self.cycle is not None and not self._in_head and not self._dropping:
            self.shutdown()

    def _refuse(self, error: RequestError) -> None:
        """Answer with the error, read no more, and close after the client does."""
        self._dropping = True
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            if self._in_head:  # of a later request: an earlier one is still being answered
                cycle.keep_alive = False
                return
            cycle.disconnected = True
            cycle.message_event.set()
            if cycle.response_started:
                self.transport.abort()
                return
        self.transport.write(self._error(error))
        if not self._close_after_the_client():
            self.transport.close()

    def _error(self, error: RequestError) -> bytes:
        """A complete response of the error, for a request that no application sees. Counts and logs it."""
        status, request_id = errors.status_of(error), self._request_id()
        self._metrics.refused(status, error.code)
        named = {"route": "other", "status": status, "request_id": request_id}
        logs.info(log, "request", {**named, "refusal": error.code})
        return errors.raw_response(error, request_id)

    def _close_after_the_client(self) -> bool:
        """Send nothing more, and wait LINGER_SECONDS for the client to close.

        Returns False where the two directions cannot be closed separately: the caller then closes both.
        """
        self._deadline, self._limit = self.loop.time() + LINGER_SECONDS, "idle_timeout"
        if not self.transport.can_write_eof():  # TLS, whose own end reads what still comes
            return False
        self.transport.write_eof()
        return True

    def _linger(self) -> bool:
        """Called before the connection is closed. True if its client still sends a body: it is read and dropped.

        To close the connection at once would reset it, and the client would lose the answer.
        """
        if self._dropping or self.pipeline or self.cycle is None or not self.cycle.more_body:
            return False
        self._dropping = True
        return self._close_after_the_client()

    def _request_id(self) -> str:
        """Of the request that is being read: its client's, if that part of its head has come."""
        reading = self._in_head or (self.cycle is not None and not self.cycle.response_complete)
        headers = dict(reversed(self.headers)) if reading else {}
        return request_record.request_id(headers.get(b"x-request-id", b""))


class HeadBuffer:
    """A transport that holds the head of an answer back until uvicorn writes the body.

    That saves a system call. And a process killed between the two has sent nothing, so that the
    supervisor can still answer 503.
    """

    def __init__(self, transport: asyncio.Transport, linger: Callable[[], bool]) -> None:
        """`linger` is called before the transport is closed; if it returns True, it closes the transport later."""
        self._transport = transport
        self._linger = linger
        self._head: bytes | None = None
        self.is_closing = transport.is_closing  # asked for every answer
        self._call_soon = asyncio.get_running_loop().call_soon

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if self._head is not None:
            head, self._head = self._head, None
            self._transport.writelines([head, data])
        elif data.startswith(_HEAD):
            self._head = data
            self._call_soon(self._flush)  # when no body follows at once
        else:
            self._transport.write(data)

    def write_eof(self) -> None:
        self._flush()
        self._transport.write_eof()

    def close(self) -> None:
        self._flush()
        if not self._linger():
            self._transport.close()

    def _flush(self) -> None:
        if self._head is not None:
            head, self._head = self._head, None
            self._transport.write(head)

"""A client connection: uvicorn's HTTP protocol with the limits that it lacks, and the service's error envelope.

uvicorn documents no limit of a request's head, of the time that a head takes, of answers that a client does not read,
or of pipelined requests. So this file and app/process/server.py use the names in `UVICORN`, documented or not;
tests/app/test_protocol.py fails when uvicorn drops one of them, and pyproject.toml bounds the version.
"""

import asyncio
import logging
import math
from typing import Any, cast

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from heedful.app import errors
from heedful.app.http import request_record
from heedful.app.state import state_of
from heedful.runtime.errors import RequestError, Unavailable

UVICORN = {
    "uvicorn.protocols.http.httptools_impl.HttpToolsProtocol": (
        "connections cycle expect_100_continue flow headers loop parser pipeline scope timeout_keep_alive transport "
        "url connection_made connection_lost data_received on_message_begin on_url on_header on_headers_complete "
        "on_body on_message_complete on_response_complete shutdown timeout_keep_alive_handler "
        "_unset_keepalive_if_required"
    ),
    "uvicorn.protocols.http.httptools_impl.RequestResponseCycle": (
        "disconnected keep_alive message_event more_body response_complete response_started transport"
    ),
    "uvicorn.protocols.http.flow_control.FlowControl": "pause_reading resume_reading",
    "uvicorn.server.Server": (
        "config server_state servers should_exit startup shutdown on_tick run lifespan"
    ),
    "uvicorn.server.ServerState": "connections default_headers tasks",
}
"""The names of uvicorn that are used, by class: attributes, and methods that are called or overridden."""

log = logging.getLogger("heedful.access")

LINGER_SECONDS = 5.0
"""How long a refused client may take to read its answer."""
PIECE = 2048
"""Bytes that are parsed at a time: the requests in them all begin before the parser stops for one in progress."""


class Flow(FlowControl):
    """uvicorn's flow control, which does not resume reading while it is `blocked`."""

    blocked = False

    def resume_reading(self) -> None:
        if not self.blocked:
            super().resume_reading()


class Protocol(HttpToolsProtocol):
    """Refuses what exceeds a limit or is not HTTP before it reaches the application.

    Connections without a request in progress are in the application's `waiting`, the oldest first.
    """

    flow: Flow

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
        self._limits = state.metrics.limits
        self.timeout_keep_alive = cast(int, state.settings.idle_timeout)
        self.waiting, self._max_connections = state.waiting, state.max_connections
        # Of a head, or of lingering.
        self._deadline = self.loop.time() + self._settings.head_timeout
        self._answering: RequestResponseCycle | None = None  # whose answer is being written
        self._unparsed = b""  # bytes that have come after a pipelined request
        self._unflushed: list[bytes] = []  # parts of an answer, of this turn of the event loop
        self._unsent, self._unsent_since = 0, 0.0  # bytes of answers, and since when so many
        self._fed = 0  # bytes that the parser got since it last completed a head, a part of a body or a request
        self._in_head = self._upgrading = False
        self._dropping = False  # whether further bytes of the client are ignored

    # The connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow = Flow(transport)
        if len(self.connections) <= self._max_connections:
            self.waiting[self] = None
        elif self.waiting:  # the oldest connection without a request makes room
            self.waiting[self] = None
            next(iter(self.waiting)).close_idle("max_connections")
        else:
            self._limits["max_connections"].inc()
            self._refuse(Unavailable("too many connections are open: try again later"))

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.waiting.pop(self, None)
        if self._answering is not None and not self._answering.response_complete:
            self._answering.disconnected = True  # uvicorn tells only the last request
            self._answering.message_event.set()

    # The transport's methods that uvicorn's RequestResponseCycle calls

    def is_closing(self) -> bool:
        return self.transport.is_closing()

    def write(self, data: bytes) -> None:
        """Write in the loop's next turn: the head is sent with the body, in one system call."""
        if not self._unflushed:
            self.loop.call_soon(self._flush)
        self._unflushed.append(data)

    def _flush(self) -> None:
        written, self._unflushed = self._unflushed, []
        if written and not self.transport.is_closing():  # uvloop would raise an error
            self.transport.writelines(written)

    def close(self) -> None:
        """Close after the answer; linger while the client still sends a body.

        Closing at once would reset the connection, and the client would lose the answer.
        """
        self._flush()
        if self._dropping or self.pipeline or not self.cycle.more_body:
            self.transport.close()
        else:
            self._linger()

    # Reading

    def data_received(self, data: bytes) -> None:
        if self._unparsed:  # the data was on its way when reading paused
            self._unparsed += data
        else:
            self._parse(data)

    def _parse(self, data: bytes) -> None:
        """Parse in pieces, until a request waits for another: uvicorn would keep any number of pipelined requests."""
        position = 0
        while position < len(data) and not self.pipeline:
            self._feed(data[position : position + PIECE])
            position += PIECE
        self._unparsed = b"" if self._dropping else data[position:]
        self.flow.blocked = bool(self._unparsed)
        if self.flow.blocked:
            self.flow.pause_reading()
        elif self._dropping or self.cycle is None or self.cycle.response_complete:
            self.flow.resume_reading()

    def _feed(self, data: bytes) -> None:
        if self._dropping:
            return
        self._fed += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._ignore_upgrade(data[upgrade.args[0] :])
        except httptools.HttpParserError as error:
            cause = error.__context__
            reason = "the bytes received are not an HTTP request"
            if isinstance(error, httptools.HttpParserInvalidMethodError):
                reason += ": it begins with a method in capitals, such as GET or POST"
            malformed = errors.Refused(reason, code="invalid_http")
            self._refuse(cause if isinstance(cause, RequestError) else malformed)
        else:
            if self._fed > self._settings.max_header_bytes:
                self._refuse(self._too_large("max_header_bytes"))

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._unset_keepalive_if_required()  # only now: a body may trickle in after its answer
        self._fed, self._in_head = 0, True
        if self._deadline == math.inf and (self.cycle is None or self.cycle.response_complete):
            self._await_head()

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > self._settings.max_url_bytes:
            raise self._too_large("max_url_bytes")

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # trailers are dropped: nothing here reads them
            super().on_header(name, value)
            if len(self.headers) > self._settings.max_headers:
                raise self._too_large("max_headers")

    def on_headers_complete(self) -> None:
        method = self.parser.get_method()
        if self.parser.should_upgrade() and method != b"CONNECT":
            self._upgrading = True  # _ignore_upgrade parses the head again
            return
        version, names = self.parser.get_http_version(), [name for name, _ in self.headers]
        if (hosts := names.count(b"host")) != 1 and version == "1.1":
            message = f"HTTP/1.1 requires one Host header, not {hosts}"
            raise errors.Refused(message, code="invalid_http")
        if b"transfer-encoding" in names:
            codings = [v.strip().lower() for k, v in self.headers if k == b"transfer-encoding"]
            if codings != [b"chunked"]:
                message = "only chunked is supported; name a compression in Content-Encoding"
                raise errors.Refused(f"Transfer-Encoding: {message}", code="invalid_http")
        if version == "1.0":
            self.expect_100_continue = False  # HTTP/1.0 has no interim answers
        self._fed, self._in_head = 0, False
        self._deadline = math.inf
        self.waiting.pop(self, None)
        self.scope[request_record.CLIENT_GONE] = self.transport.is_closing  # type: ignore[literal-required]
        super().on_headers_complete()
        self.cycle.transport = cast(asyncio.Transport, self)
        if not self.pipeline:
            self._answering = self.cycle
        if method == b"CONNECT":
            self._dropping = True  # no tunnel is opened
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        self._fed = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        if not self._upgrading:
            self._fed = 0
            super().on_message_complete()

    def _ignore_upgrade(self, rest: bytes) -> None:
        """Parse the head again without `Upgrade`, which a server may ignore (RFC 9110, 7.8), then the body."""
        if not self._upgrading:  # CONNECT
            return
        self._upgrading = False
        version = self.parser.get_http_version().encode()
        head = [self.parser.get_method() + b" " + self.url + b" HTTP/" + version]
        head += [name + b": " + value for name, value in self.headers if name != b"upgrade"]
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._feed(b"\r\n".join(head) + b"\r\n\r\n" + rest)

    def on_response_complete(self) -> None:
        self._flush()
        if self.pipeline:
            self._answering = self.pipeline[-1][0]  # the next request
        super().on_response_complete()
        if self.transport.is_closing():
            return
        if self._answering is not None and self._answering.response_complete:
            self.waiting[self] = None
            if self._in_head:
                self._unset_keepalive_if_required()
                self._await_head()
        if self._unparsed:
            self._parse(self._unparsed)

    # Limits

    def _await_head(self) -> None:
        self._deadline = self.loop.time() + self._settings.head_timeout

    def _too_large(self, limit: str) -> errors.Refused:
        self._limits[limit].inc()
        value = getattr(self._settings, limit)
        if limit == "max_url_bytes":
            message = f"the URL is longer than {value} bytes: shorten it"
            return errors.Refused(message, code="url_too_long")
        unit = "lines" if limit == "max_headers" else "bytes"
        message = f"the headers hold more than {value} {unit}: send fewer"
        return errors.Refused(message, code="headers_too_large")

    def check_timeouts(self, now: float) -> None:
        """End the connection if its client has taken longer than a setting allows."""
        unsent = self.transport.get_write_buffer_size()
        if not unsent or not self._unsent or unsent < self._unsent:
            self._unsent, self._unsent_since = unsent, now
        elif now - self._unsent_since >= self._settings.write_timeout:
            self._limits["write_timeout"].inc()
            self.transport.abort()
            return
        if now < self._deadline:
            return
        if self._in_head and not self._dropping:
            self._limits["head_timeout"].inc()
            limit = self._settings.head_timeout
            message = f"no complete head within {limit:g} s"
            self._refuse(errors.Refused(message, code="request_timeout"))
        else:  # no byte of a head has come, or a refused client goes on sending
            self.close_idle("idle_timeout" if self._dropping else "head_timeout")

    def timeout_keep_alive_handler(self) -> None:
        self.close_idle("idle_timeout")

    def close_idle(self, limit: str) -> None:
        """Close the connection, which has no request in progress, and count it under this limit."""
        self._limits[limit].inc()
        self._deadline = math.inf
        self.waiting.pop(self, None)
        self.transport.close()

    def close_after_answer(self) -> None:
        """Close the connection after the request in progress; else now, or after its first request."""
        if self.cycle is not None and not self._in_head and not self._dropping:
            self.shutdown()

    def _refuse(self, error: RequestError) -> None:
        """Answer with the error, ignore further bytes, and close after the client."""
        self._dropping = True
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            if self._in_head:  # a later request is wrong, an earlier one is being answered
                cycle.keep_alive = False
                return
            cycle.disconnected = True
            cycle.message_event.set()
            if cycle.response_started:
                self.transport.abort()
                return
        self._flush()
        status, request_id = errors.status_of(error), self._request_id()
        self._metrics.refused(status, error.code)
        fields = {"route": "other", "status": status, "request_id": request_id}
        log.info("request", extra={**fields, "refusal": error.code})
        self.transport.write(errors.raw_response(error, request_id))
        self._linger()

    def _linger(self) -> None:
        """Send nothing more, ignore further bytes, and wait LINGER_SECONDS for the client to close."""
        self._dropping = True
        self._deadline = self.loop.time() + LINGER_SECONDS
        if self.transport.can_write_eof():
            self.transport.write_eof()
        else:  # with TLS, closing reads on until the client closes
            self.transport.close()

    def _request_id(self) -> str:
        """The id of the request being read: the client's, if that header has come, else a new one."""
        reading = self._in_head or (self.cycle is not None and not self.cycle.response_complete)
        headers = dict(reversed(self.headers)) if reading else {}
        return request_record.request_id(headers.get(b"x-request-id", b""))

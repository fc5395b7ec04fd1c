"""Middleware for every request: its record, the API key, the body limit. Pure ASGI."""

import logging
import time
from collections.abc import Awaitable, Collection

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from heedful.app import errors
from heedful.app.http import ndjson, request_record
from heedful.app.http.auth import Keys
from heedful.app.http.paths import Paths
from heedful.app.observability.metrics import Metrics
from heedful.app.observability.tracing import Tracing
from heedful.runtime.errors import RequestError

log = logging.getLogger("heedful.access")

PUBLIC = frozenset({"/health", "/ready", "/metrics", "/v2/health/live", "/v2/health/ready"})
"""Routes that need no API key: probes and scrapers have none."""
CLIENT_CLOSED = 499
"""nginx's status for a client that disconnected before the answer; in log and metrics only."""


class Recorded:
    """The outermost middleware: records each request and reports it once, when it ends.

    Adds the request id and timing headers, and then counts, logs and, if configured, traces the request.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        metrics: Metrics,
        paths: Paths,
        tracing: Tracing | None = None,
    ) -> None:
        self._app = app
        self._metrics = metrics
        self._paths = paths
        self._tracing = tracing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path, route, parameters = self._paths.resolve(scope["path"])
        scope = {**scope, "path": path, "path_params": parameters}
        entry = request_record.Record(
            request_record.request_id(scope), route, errors.has_text_error(path)
        )
        if media := request_record.header(scope, b"content-type"):
            entry.media = media.partition(";")[0].strip().lower()
        if priority := request_record.header(scope, b"x-priority"):
            entry.bulk = priority.strip().lower() == "bulk"
        request_record.attach(scope, entry)

        gone = scope.get(request_record.CLIENT_GONE, bool)

        async def send_on(message: Message) -> None:
            if message["type"] == "http.response.start":
                if not gone():
                    entry.status = message["status"]
                message["headers"] = [*message["headers"], *_headers(entry)]
            await send(message)

        try:
            await self._app(scope, receive, send_on)
        finally:
            status = CLIENT_CLOSED if entry.status is None else entry.status
            ended = time.perf_counter()
            self._metrics.request(entry, status, ended)
            if self._tracing and route not in PUBLIC:
                self._tracing.request(entry, Headers(scope=scope), scope["method"], status)
            if log.isEnabledFor(logging.INFO):
                line = {
                    "method": scope["method"],
                    "route": route,
                    "status": status,
                    "request_id": entry.id,
                    "model": entry.model,
                    "inputs": entry.result and entry.result.inputs,
                    "duration_ms": round(1000 * (ended - entry.started), 3),
                    "refusal": entry.refusal,
                }
                log.info("request", extra=line)


class Failures:
    """Answers uncaught exceptions with 500.

    It is inside the CORS layer: without that layer's headers, a page of another origin cannot read the answer.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            await self._app(scope, receive, send)
        except Exception:
            entry = request_record.of(scope)
            log.exception("request failed", extra={"request_id": entry.id, "route": entry.route})
            if entry.status is not None:  # the answer has begun, and can only be cut off
                raise
            await errors.respond(entry, errors.Internal())(scope, receive, send)


class ApiKey:
    """Refuses requests without `Authorization: Bearer KEY`, except PUBLIC routes and reading `pages`."""

    def __init__(self, app: ASGIApp, *, keys: Keys, pages: Collection[str] = ()) -> None:
        self._app = app
        self._keys = keys
        self._pages = frozenset(pages)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not self._is_public(scope):
            entry = request_record.of(scope)
            try:
                self._check(scope, entry)
            except RequestError as refusal:
                await errors.respond(entry, refusal)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _is_public(self, scope: Scope) -> bool:
        reading = scope["method"] in ("GET", "HEAD")
        return scope["path"] in PUBLIC or (reading and scope["path"] in self._pages)

    def _check(self, scope: Scope, entry: request_record.Record) -> None:
        """Raises Unauthorized."""
        scheme, _, sent = request_record.header(scope, b"authorization").partition(" ")
        key = self._keys.find(sent.strip()) if scheme.lower() == "bearer" else None
        if key is None:
            raise errors.Unauthorized("send the API key as 'Authorization: Bearer KEY'")
        entry.key, entry.bulk = key.name, entry.bulk or key.bulk


class BodyLimit:
    """Refuses bodies of more than `limit` bytes without reading the rest."""

    def __init__(self, app: ASGIApp, *, limit: int) -> None:
        self._app = app
        self._limit = limit

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] != "http" or ndjson.declared(scope):  # a limit for each line
            return self._app(scope, receive, send)
        announced = request_record.header(scope, b"content-length")
        if not announced.isdecimal():
            return self._counted(scope, receive, send)
        if int(announced) > self._limit:
            refusal = errors.respond(request_record.of(scope), errors.body_too_large(self._limit))
            return refusal(scope, receive, send)
        return self._app(scope, receive, send)  # the server reads no more than is announced

    async def _counted(self, scope: Scope, receive: Receive, send: Send) -> None:
        read = 0

        async def receive_on() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > self._limit:
                raise errors.body_too_large(self._limit)
            return message

        await self._app(scope, receive_on, send)


class HeadAsGet:
    """Answers HEAD as GET (RFC 9110, 9.3.2); the server omits the body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "HEAD":
            scope = {**scope, "method": "GET"}
        await self._app(scope, receive, send)


def _headers(entry: request_record.Record) -> list[tuple[bytes, bytes]]:
    headers = [
        (b"x-request-id", entry.id.encode()),
        (b"server-timing", _server_timing(entry).encode()),
    ]
    headers += [(name.lower().encode(), value.encode()) for name, value in entry.notes().items()]
    return headers


def _server_timing(entry: request_record.Record) -> str:
    """W3C Server-Timing, in milliseconds."""
    total = f"total;dur={1000 * (time.perf_counter() - entry.started):.3f}"
    if entry.result is None:
        return total
    timing = entry.result.timing
    return (
        f"parse;dur={1000 * timing.parse:.3f}, queue;dur={1000 * timing.queue:.3f}, "
        f"inference;dur={1000 * timing.inference:.3f}, {total}"
    )

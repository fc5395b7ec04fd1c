"""What wraps every request: its record, the API key, the limit on its body. Pure ASGI."""

import hmac
import logging
import re
import time
from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from heedful.app import errors, record
from heedful.app.metrics import Metrics
from heedful.app.tracing import Tracing

log = logging.getLogger("heedful.access")

OPEN = frozenset({"/health", "/ready", "/metrics"})
"""Routes that need no API key: probes and scrapers have none."""
GONE = 499
"""Status in log and metrics of a request whose client went away before its answer (nginx's)."""
_SANE_ID = re.compile(r"[!-~]{1,128}")  # printable ASCII: safe in a header and in a log line


class Recorded:
    """Outermost. Gives each request an id, and its answer the headers that all answers carry;
    answers what nothing else caught with 500; counts, logs and, where that is asked for, traces
    each request once, at its end."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        metrics: Metrics,
        routes: Collection[str],
        tracing: Tracing | None = None,
    ) -> None:
        self._app = app
        self._metrics = metrics
        self._routes = frozenset(routes)
        self._tracing = tracing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        route = scope["path"] if scope["path"] in self._routes else "other"
        kept = record.Record(_request_id(scope), route)
        record.attach(scope, kept)
        status = GONE

        async def send_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *_headers(kept)]
            await send(message)

        try:
            await self._app(scope, receive, send_on)
        except Exception:
            log.exception("request failed", extra={"request_id": kept.id, "route": route})
            if status != GONE:  # the answer has begun: all that is left is to break it off
                raise
            internal = errors.Internal("the service failed; its log has the cause under this id")
            await errors.respond(kept, internal)(scope, receive, send_on)
        finally:
            ended = time.perf_counter()
            self._metrics.request(kept, status, ended)
            if self._tracing and route not in OPEN:
                self._tracing.request(kept, Headers(scope=scope), scope["method"], status)
            log.info(
                "request",
                extra={
                    "method": scope["method"],
                    "route": route,
                    "status": status,
                    "request_id": kept.id,
                    "model": kept.model,
                    "inputs": kept.result and kept.result.inputs,
                    "duration_ms": round(1000 * (ended - kept.started), 3),
                    "refusal": kept.refusal,
                },
            )


class ApiKey:
    """Refuses a request without `Authorization: Bearer KEY`, but for the routes in OPEN and for
    reading `pages`, which ask for the key themselves."""

    def __init__(self, app: ASGIApp, *, key: str, pages: Collection[str] = ()) -> None:
        self._app = app
        self._key = key.encode()
        self._pages = frozenset(pages)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self._open(scope) or self._admits(scope):
            await self._app(scope, receive, send)
            return
        refusal = errors.Unauthorized("send the API key as 'Authorization: Bearer KEY'")
        await errors.respond(record.of(scope), refusal)(scope, receive, send)

    def _open(self, scope: Scope) -> bool:
        reading = scope["method"] in ("GET", "HEAD")
        return scope["path"] in OPEN or (reading and scope["path"] in self._pages)

    def _admits(self, scope: Scope) -> bool:
        scheme, _, key = record.header(scope, b"authorization").partition(" ")
        return hmac.compare_digest(key.strip().encode(), self._key) and scheme.lower() == "bearer"


class BodyLimit:
    """Refuses a body of more than `limit` bytes, and reads no more than that of it."""

    def __init__(self, app: ASGIApp, *, limit: int) -> None:
        self._app = app
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        announced = record.header(scope, b"content-length")
        if announced.isdecimal() and int(announced) > self._limit:
            await errors.respond(record.of(scope), self._refusal())(scope, receive, send)
            return
        read = 0

        async def receive_on() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > self._limit:
                raise self._refusal()
            return message

        await self._app(scope, receive_on, send)

    def _refusal(self) -> errors.BodyTooLarge:
        return errors.BodyTooLarge(
            f"the body is larger than {self._limit} bytes; send fewer inputs in one request"
        )


class Head:
    """Answers HEAD as GET (RFC 9110, 9.3.2); the server leaves the body out."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "HEAD":
            scope = {**scope, "method": "GET"}
        await self._app(scope, receive, send)


def _request_id(scope: Scope) -> str:
    sent = record.header(scope, b"x-request-id")
    return sent if sent and _SANE_ID.fullmatch(sent) else record.new_id()


def _headers(kept: record.Record) -> list[tuple[bytes, bytes]]:
    headers = [
        (b"x-request-id", kept.id.encode()),
        (b"server-timing", _server_timing(kept).encode()),
    ]
    if kept.result is not None and kept.result.truncated:
        headers.append((b"x-truncated", str(kept.result.truncated).encode()))
    return headers


def _server_timing(kept: record.Record) -> str:
    """W3C Server-Timing, in milliseconds."""
    total = time.perf_counter() - kept.started
    stages = {"total": total}
    if kept.result is not None:
        timing = kept.result.timing
        stages = {
            "parse": timing.parse,
            "queue": timing.queue,
            "inference": timing.inference,
            **stages,
        }
    return ", ".join(f"{stage};dur={1000 * seconds:.3f}" for stage, seconds in stages.items())

"""Record: one request's data for its headers, log line, metrics and trace. Recorder keeps and reports it."""

import asyncio
import logging
import random
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.routing import compile_path
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from heedful.app import errors
from heedful.app.http.framework_errors import request_error
from heedful.app.schemas import base
from heedful.runtime.answers import Result
from heedful.runtime.errors import RequestError, UnknownModel

if TYPE_CHECKING:  # these modules import Record
    from heedful.app.observability.metrics import Metrics
    from heedful.app.observability.tracing import Tracing

log = logging.getLogger("heedful.access")

PUBLIC = frozenset({"/health", "/ready", "/metrics", "/v2/health/live", "/v2/health/ready"})
"""Routes that need no API key: probes and scrapers have none."""
COHERE_PATHS = frozenset({"/v2/embed", "/v2/rerank"})
"""Cohere's paths under /v2, which is else the Open Inference Protocol's, whose errors are texts."""
CLIENT_CLOSED = 499
"""nginx's status for a client that disconnected before the answer; in log and metrics only."""
RECORD = "heedful.record"
"""The record's place in the scope of its request."""
CLIENT_GONE = "heedful.client_gone"
"""The place in a scope of a function that says whether the connection is closed. Other servers set none."""
CHECK_SECONDS = 0.05
"""Between two checks of the requests in progress."""
_SLASHES = re.compile("//+")
_VALID_ID = re.compile(r"[!-~]{1,128}")  # printable ASCII: safe in a header and in a log line


class Timing(NamedTuple):
    """Seconds. `parse` is what waiting for models leaves, and includes waiting for other requests' texts."""

    parse: float = 0.0
    queue: float = 0.0
    inference: float = 0.0


@dataclass(slots=True)
class Record:
    """One request, from its head to its last byte."""

    id: str
    route: str
    """A path that the service has, or "other": never a client's own text."""
    headers: Mapping[bytes, bytes] = field(default_factory=dict)
    """The first header of each name, in lower case."""
    text_error: bool = False
    """Whether the field `error` of a refusal is a text, as in the Open Inference Protocol."""
    model: str = "none"
    """A loaded model, "other" for an unknown name, "none" when the route needs no model."""
    media: str = ""
    """The media type of its body, in lower case and without parameters."""
    bulk: bool = False
    """Whether it waits while other requests do."""
    key: str | None = None
    """The name of its API key, where requests are counted by key."""
    started: float = field(default_factory=time.perf_counter)  # seconds
    answered: float | None = None  # when the result was ready and writing began
    result: Result[Any] | None = None
    timing: Timing = field(default_factory=Timing)  # of the result
    status: int | None = None  # once the answer has begun
    refusal: str | None = None  # the error's code
    ignored: list[str] = field(default_factory=list)  # names of unknown fields

    @classmethod
    def from_head(cls, route: str, path: str, headers: Iterable[tuple[bytes, bytes]]) -> Self:
        """The record of a request whose head has come."""
        first_headers = dict(reversed(list(headers)))
        client_id = first_headers.get(b"x-request-id")
        media = first_headers.get(b"content-type", b"").decode("latin-1")
        return cls(
            id=request_id(client_id) if client_id else new_id(),
            route=route,
            headers=first_headers,
            text_error=path == "/v2" or (path.startswith("/v2/") and path not in COHERE_PATHS),
            media=media.partition(";")[0].strip().lower(),
            bulk=first_headers.get(b"x-priority", b"").strip().lower() == b"bulk",
        )

    def header(self, name: bytes) -> str:
        """The first header with this lower-case name, or ""."""
        return self.headers.get(name, b"").decode("latin-1")

    def refuse(self, error: RequestError, headers: Mapping[str, str] | None = None) -> Response:
        """The answer to an error: its envelope, status and headers. Records its code."""
        self.refusal = error.code
        if isinstance(error, UnknownModel):
            self.model = "other"
        all_headers = {**errors.HEADERS.get(error.code, {}), **(headers or {})}
        body = errors.envelope(error, text=self.text_error)
        return Response(body, errors.status_of(error), all_headers, "application/json")

    def notes(self) -> dict[str, str]:
        """Headers that say what was done to the inputs."""
        notes = {}
        if result := self.result:
            if result.truncated:
                notes["X-Truncated"] = str(result.truncated)
            if result.averaged:
                notes["X-Windows"] = str(result.averaged)
            if result.out_of_domain:
                notes["X-Warning"] = (
                    f"{result.out_of_domain} of {result.inputs} inputs are of another language, or of words that "
                    f"are not in the vocabulary: {result.card.name} was trained on English, the answer means little"
                )
        if self.ignored and (names := base.header_of(self.ignored)):
            notes["X-Ignored-Fields"] = names
        return notes

    def answer_headers(self) -> list[tuple[bytes, bytes]]:
        """The id, the stages' times in milliseconds (W3C Server-Timing), and the notes."""
        timing = f"total;dur={1000 * (time.perf_counter() - self.started):.3f}"
        if self.result is not None:
            timing = (
                f"parse;dur={1000 * self.timing.parse:.3f}, queue;dur={1000 * self.timing.queue:.3f}, "
                f"inference;dur={1000 * self.timing.inference:.3f}, {timing}"
            )
        headers = [(b"x-request-id", self.id.encode()), (b"server-timing", timing.encode())]
        for name, value in self.notes().items():
            headers.append((name.lower().encode(), value.encode()))
        return headers


class Deadlines:
    """Checks all requests every CHECK_SECONDS: a timer and a task for each would take some 20 µs a request."""

    def __init__(self) -> None:
        self._open: dict[asyncio.Timeout, tuple[float, Callable[[], bool]]] = {}
        self._is_scheduled = False

    def add(self, timeout: asyncio.Timeout, seconds: float, gone: Callable[[], bool]) -> None:
        """Expire the timeout after `seconds`, or once the client is `gone`, unless it is removed."""
        loop = asyncio.get_running_loop()
        self._open[timeout] = loop.time() + seconds, gone
        if not self._is_scheduled:
            self._is_scheduled = True
            loop.call_later(CHECK_SECONDS, self._check)

    def remove(self, timeout: asyncio.Timeout) -> None:
        self._open.pop(timeout, None)

    def _check(self) -> None:
        loop = asyncio.get_running_loop()
        for timeout, (end, gone) in self._open.items():
            if timeout.when() is None and (loop.time() >= end or gone()):
                timeout.reschedule(0.0)
        self._is_scheduled = bool(self._open)
        if self._is_scheduled:
            loop.call_later(CHECK_SECONDS, self._check)


def new_id() -> str:
    """A request id. os.urandom would release the GIL to a session's thread, and wait to get it back."""
    return f"{random.getrandbits(128):032x}"


def request_id(client_id: bytes) -> str:
    """The client's id if it is valid, else a new one."""
    text = client_id.decode("latin-1")
    return text if _VALID_ID.fullmatch(text) else new_id()


class Recorder:
    """The outermost middleware: records each request and reports it once, when it ends.

    Adds the request id and timing headers, answers errors, and then counts, logs and, if configured, traces the
    request. Passes HEAD on as GET (RFC 9110, 9.3.2): the server omits the body.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        metrics: "Metrics",
        paths: Iterable[str],
        tracing: "Tracing | None" = None,
        cors: Callable[[ASGIApp], ASGIApp] = lambda app: app,
    ) -> None:
        """`cors` adds headers to answers, also to a 500: without them, a page of another origin cannot read it."""
        self._app = cors(app)
        self._cors = cors
        self._metrics = metrics
        self._tracing = tracing
        known = frozenset(paths)
        self._fixed = frozenset(path for path in known if "{" not in path)
        self._patterns = [compile_path(path)[:2] for path in sorted(known - self._fixed)]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = route = scope["path"]
        parameters: dict[str, str] = {}
        if path not in self._fixed:
            path, route, parameters = self._resolve(path)
        record = Record.from_head(route, path, scope["headers"])
        method = scope["method"]
        scope = {
            **scope,
            RECORD: record,
            "path": path,
            "path_params": parameters,
            "method": "GET" if method == "HEAD" else method,
        }

        gone = scope.get(CLIENT_GONE, bool)

        async def send_on(message: Message) -> None:
            if message["type"] == "http.response.start":
                if not gone():
                    record.status = message["status"]
                message["headers"] = [*message["headers"], *record.answer_headers()]
            await send(message)

        try:
            await self._app(scope, receive, send_on)
        except Exception as error:
            refusal = request_error(error, scope)
            if refusal is None:
                log.exception("request failed", extra={"request_id": record.id, "route": route})
            if record.status is not None:  # the answer has begun, and can only be cut off
                raise
            answer = record.refuse(*(refusal or [errors.Internal()]))
            await self._cors(answer)(scope, receive, send_on)
        finally:
            self._report(record, scope, method)

    def _resolve(self, path: str) -> tuple[str, str, dict[str, str]]:
        """The path without superfluous slashes, its route or "other", and its parameters.

        Slashes double where a client's base URL ends with a slash.

        The parameter of /v1/models/{model:path} may hold slashes; its route is called /v1/models/{model}.
        """
        shorter = _SLASHES.sub("/", path).rstrip("/") or path[:1]
        if shorter in self._fixed:
            return shorter, shorter, {}
        for pattern, route in self._patterns:
            if match := pattern.match(shorter):
                return shorter, route, match.groupdict()
        return path, "other", {}

    def _report(self, record: Record, scope: Scope, method: str) -> None:
        status = CLIENT_CLOSED if record.status is None else record.status
        ended = time.perf_counter()
        self._metrics.request(record, status, ended)
        if self._tracing and record.route not in PUBLIC:
            self._tracing.request(record, Headers(raw=scope["headers"]), method, status)
        is_probe = record.route in PUBLIC and status < 400
        level = logging.DEBUG if is_probe else logging.INFO
        if log.isEnabledFor(level):
            fields = {
                "method": method,
                "route": record.route,
                "status": status,
                "request_id": record.id,
                "model": record.model,
                "inputs": record.result and record.result.inputs,
                "duration_ms": round(1000 * (ended - record.started), 3),
                "refusal": record.refusal,
            }
            log.log(level, "request", extra=fields)

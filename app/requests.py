"""The fast path of the inference routes: FastAPI documents them but does not call them."""

import contextlib
import inspect
import json
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import orjson
from fastapi import APIRouter, Request
from fastapi.routing import APIRoute
from pydantic import TypeAdapter
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from heedful.app import coding, errors, ndjson, record
from heedful.app.errors import MalformedBody
from heedful.app.large import LARGE_BYTES, LargeBodies, check_counts
from heedful.app.lines import InferenceEndpoint
from heedful.app.middleware import CLIENT_CLOSED
from heedful.app.state import state_of
from heedful.app.watch import Watch
from heedful.runtime.errors import RequestError

MAX_DEPTH = 64
"""Levels of lists and objects in a body: no route reads as many, and what walks them uses the stack."""


class InferenceRoute(APIRoute):
    """A route whose endpoint takes a validated `body` and the `request`.

    FastPath calls it in 13 µs; an `APIRoute.get_route_handler` behind FastAPI's router takes 64 µs.
    """

    @staticmethod
    def read(scope: Scope, body: bytes) -> Any:
        """A request's body, which must be JSON and said to be. Raises MalformedBody."""
        media = record.of(scope).media
        if media != "application/json" and not (
            media.startswith("application/") and media.endswith("+json")
        ):
            raise MalformedBody(
                "send the header 'Content-Type: application/json'", code="wrong_content_type"
            )
        return parse(body)


def inference_routes(routers: Iterable[APIRouter]) -> dict[str, InferenceEndpoint]:
    """Every InferenceRoute of the routers, by its path."""
    return {
        route.path: InferenceEndpoint(
            route.path, _body_of(route.endpoint), route.endpoint, route.read, parse
        )
        for router in routers
        for route in router.routes
        if isinstance(route, InferenceRoute)
    }


class FastPath:
    """Answers POST to every InferenceRoute; all other requests go on to FastAPI.

    Reads the body with orjson. Cancels the endpoint, which frees what it queued, at the time limit
    and when the client disconnects.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        routers: Iterable[APIRouter],
        limit: float,
        max_bytes: int,
        max_inputs: int,
    ) -> None:
        """`limit` is the time limit in seconds, `max_bytes` that of a body once it is decompressed.

        `max_inputs` is that of one request.
        """
        self._app = app
        self._max_inputs = max_inputs
        self._large = LargeBodies()
        self._watch = Watch(limit)
        self._limit = limit
        self._max_bytes = max_bytes
        self._routes = inference_routes(routers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        entry = record.of(scope)
        endpoint = self._routes.get(entry.route)
        if endpoint is None or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        try:
            if ndjson.declared(scope):
                if endpoint.read is not InferenceRoute.read:
                    raise MalformedBody("this route reads no NDJSON", code="wrong_content_type")
                limit, most = self._limit, self._max_bytes
                await ndjson.stream(endpoint, scope, receive, send, limit=limit, max_bytes=most)
                return
            with self._watch.guard(receive) as in_flight:
                body = await self._read(scope, receive)
                in_flight.body_read = True
                entry.alone = len(state_of(scope["app"]).running) == 1
                value = await self._large.call(len(body), self._value, endpoint, scope, entry, body)
                response = await endpoint.answer(value, Request(scope, receive))
        except ClientDisconnect:
            response = Response(status_code=CLIENT_CLOSED)
        except RequestError as error:
            response = errors.respond(entry, error)
        await response(scope, receive, send)

    async def _read(self, scope: Scope, receive: Receive) -> bytes:
        """The body, decompressed. Raises MalformedBody, BodyTooLarge, ClientDisconnect."""
        parts = []
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            parts.append(message.get("body", b""))
            more = message.get("more_body", False)
        body = b"".join(parts)
        sent_as = record.header(scope, b"content-encoding")
        if not sent_as:
            return body
        return await coding.decoded(body, sent_as.strip().lower(), self._max_bytes)

    def _value(
        self, endpoint: InferenceEndpoint, scope: Scope, entry: record.Record, body: bytes
    ) -> Any:
        """What the endpoint takes. Raises MalformedBody, TooManyInputs, BadInput."""
        try:
            value = endpoint.read(scope, body)
            check_counts(value, self._max_inputs)
            return endpoint.validated(value, entry)
        finally:
            if len(body) > LARGE_BYTES:
                state_of(scope["app"]).service.trim_later()


def _body_of(endpoint: Callable[..., Any]) -> TypeAdapter[Any]:
    annotation: Any = inspect.signature(endpoint).parameters["body"].annotation
    return TypeAdapter(annotation)


def parse(body: bytes) -> Any:
    """Read JSON strictly: no NaN, no Infinity, UTF-8, at most MAX_DEPTH deep. Raises MalformedBody.

    Lone surrogates pass: the runtime refuses them and names the field.
    """
    value = _loads(body)
    if body.count(b"[") + body.count(b"{") > MAX_DEPTH:  # fewer cannot be deeper
        _check_depth(value)
    return value


def _check_depth(value: object) -> None:
    """Level by level. Raises MalformedBody."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        containers = [each for each in level if isinstance(each, (dict, list))]
        if not containers:
            return
        level = []
        for each in containers:
            level += each.values() if isinstance(each, dict) else each
    raise MalformedBody(
        f"the body nests lists and objects more than {MAX_DEPTH} deep: send them flatter"
    )


def _loads(body: bytes) -> Any:
    """Raises MalformedBody."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if b"\\u" in body:
            with contextlib.suppress(ValueError, RecursionError):
                return json.loads(body.decode(), parse_constant=_refuse, parse_float=_finite)
        raise MalformedBody(f"the body is not JSON: {error}") from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _finite(digits: str) -> float:
    """Refuse a number that overflows to infinity, as orjson does."""
    number = float(digits)
    if abs(number) == float("inf"):
        raise ValueError(digits)
    return number

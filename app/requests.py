"""How the routes that do work are asked: past FastAPI, which documents them."""

import contextlib
import inspect
import json
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, NoReturn

import orjson
from fastapi import APIRouter, Request
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from heedful.app import errors, record
from heedful.app.errors import MalformedBody
from heedful.app.middleware import CLIENT_CLOSED
from heedful.app.watch import Watch
from heedful.runtime.errors import RequestError

Endpoint = Callable[[Any, Request], Awaitable[Response]]


class InferenceRoute(APIRoute):
    """A route that does work: its endpoint takes `body`, of a type of its own, and `request`.

    It is called by FastPath. FastAPI's own way to an endpoint takes several times as long.
    """


class FastPath:
    """Answers POST to the WorkRoutes; all other requests go on to FastAPI.

    Reads the body with orjson, gives up at the time limit, and drops the work of a client that goes
    away: in both cases by cancelling the endpoint, which frees what it queued.
    """

    def __init__(self, app: ASGIApp, *, routers: Iterable[APIRouter], limit: float) -> None:
        """`limit` is the time limit in seconds."""
        self._app = app
        self._watch = Watch(limit)
        self._endpoints: dict[str, tuple[TypeAdapter[Any], Endpoint]] = {
            route.path: (_body_of(route.endpoint), route.endpoint)
            for router in routers
            for route in router.routes
            if isinstance(route, InferenceRoute)
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = self._endpoints.get(scope["path"]) if scope["type"] == "http" else None
        if found is None or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        kind, endpoint = found
        try:
            with self._watch.guard(receive) as in_flight:
                value = parse(await _read(scope, receive))
                in_flight.body_read = True
                response = await endpoint(_validated(kind, value), Request(scope, receive))
        except ClientDisconnect:
            response = Response(status_code=CLIENT_CLOSED)
        except RequestError as error:
            response = errors.respond(record.of(scope), error)
        await response(scope, receive, send)


def _body_of(endpoint: Callable[..., Any]) -> TypeAdapter[Any]:
    annotation: Any = inspect.signature(endpoint).parameters["body"].annotation
    return TypeAdapter(annotation)


async def _read(scope: Scope, receive: Receive) -> bytes:
    """The body, which must be said to be JSON. Raises MalformedBody, ClientDisconnect."""
    parts = []
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    media = record.header(scope, b"content-type").partition(";")[0].strip().lower()
    if media != "application/json" and not (
        media.startswith("application/") and media.endswith("+json")
    ):
        raise MalformedBody(
            "send the header 'Content-Type: application/json'", code="wrong_content_type"
        )
    return b"".join(parts)


def _validated(kind: TypeAdapter[Any], value: object) -> Any:
    """Raises BadInput in the words of the first complaint."""
    try:
        return kind.validate_python(value)
    except ValidationError as error:
        raise errors.bad_input(error.errors(include_url=False)) from None


def parse(body: bytes) -> Any:
    """Read JSON strictly: no NaN, no Infinity, UTF-8. Raises MalformedBody.

    Lone surrogates are let through: they are the fault of one field, which the runtime names.
    """
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
    """JSON has no infinity, and orjson refuses a number that would be read as one."""
    number = float(digits)
    if abs(number) == float("inf"):
        raise ValueError(digits)
    return number

"""How a JSON request is read and bounded: WorkRoute is the class of every route that does work."""

import asyncio
import contextlib
import inspect
import json
from collections.abc import Callable, Coroutine, Iterable, Iterator
from typing import Any, NoReturn

import orjson
from fastapi import APIRouter, Request
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from app import errors, record
from app.errors import MalformedBody
from app.middleware import GONE
from runtime.errors import RequestError, TimedOut

Handler = Callable[[Request], Coroutine[Any, Any, Response]]

WATCHED_FROM = 0.05
"""Seconds a request has lasted when we begin to see whether its client is still there."""


class Work:
    """Calls the handler of a WorkRoute by its path. All other requests go on to FastAPI, whose own
    way to a handler takes several times as long; its routes of work are there to be documented."""

    def __init__(self, app: ASGIApp, *, routers: Iterable[APIRouter]) -> None:
        self._app = app
        self._handlers = {
            route.path: route.get_route_handler()
            for router in routers
            for route in router.routes
            if isinstance(route, WorkRoute)
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        handle = self._handlers.get(scope["path"]) if scope["type"] == "http" else None
        if handle is None or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        try:
            response = await handle(Request(scope, receive))
        except RequestError as error:
            response = errors.respond(record.of(scope), error)
        await response(scope, receive, send)


class WorkRoute(APIRoute):
    """A route whose endpoint takes `body` and `request`. Reads the body with orjson, gives up at the
    time limit, and drops the work of a client that goes away: in both cases by cancelling the
    endpoint, which frees what it queued."""

    def get_route_handler(self) -> Handler:
        endpoint = self.endpoint
        body = TypeAdapter(inspect.signature(endpoint).parameters["body"].annotation)

        async def handler(request: Request) -> Response:
            limit: float = request.app.state.settings.request_timeout
            request = JSONRequest(request.scope, request.receive)
            gone = asyncio.Event()
            try:
                async with asyncio.timeout(limit) as deadline:
                    fields = _validated(body, await request.json())
                    with _watch(request.receive, gone, deadline):
                        answer: Response = await endpoint(fields, request)
                        return answer
            except ClientDisconnect:  # before the body's end
                return Response(status_code=GONE)
            except TimeoutError:
                if gone.is_set():
                    return Response(status_code=GONE)
                if not deadline.expired():
                    raise
                raise TimedOut(
                    f"not answered within {limit:g} s; send fewer inputs, or try later"
                ) from None

        return handler


def _validated(body: TypeAdapter[Any], value: object) -> Any:
    """Raises BadInput in the words of the first complaint."""
    try:
        return body.validate_python(value)
    except ValidationError as error:
        raise errors.bad_input(error.errors(include_url=False)) from None


class JSONRequest(Request):
    """A request whose body must be JSON, and must be said to be."""

    async def json(self) -> Any:
        """The body's value, read once. Raises MalformedBody."""
        if not hasattr(self, "_json"):
            body = await self.body()
            sent = self.headers.get("content-type", "")
            media = sent.partition(";")[0].strip().lower()
            if media != "application/json" and not (
                media.startswith("application/") and media.endswith("+json")
            ):
                raise MalformedBody(
                    "send the header 'Content-Type: application/json'", code="wrong_content_type"
                )
            self._json = parse(body)
        return self._json


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


@contextlib.contextmanager
def _watch(receive: Receive, gone: asyncio.Event, deadline: asyncio.Timeout) -> Iterator[None]:
    """While inside, a client that goes away sets `gone` and moves the deadline to now."""
    loop = asyncio.get_running_loop()
    watchers: list[asyncio.Task[None]] = []

    async def wait() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        gone.set()
        deadline.reschedule(loop.time())

    # Most requests have been answered before a watcher is worth its cost.
    timer = loop.call_later(WATCHED_FROM, lambda: watchers.append(loop.create_task(wait())))
    try:
        yield
    finally:
        timer.cancel()
        for watcher in watchers:
            watcher.cancel()

"""How a JSON request is read and bounded: WorkRoute is the class of every route that does work."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, NoReturn

import orjson
from fastapi import Request
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive

from app.errors import MalformedBody
from app.middleware import GONE
from runtime.errors import TimedOut


class WorkRoute(APIRoute):
    """Reads the body with orjson, gives up at the time limit, and drops the work of a client
    that goes away: in both cases by cancelling the handler, which frees what it queued."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handler(request: Request) -> Response:
            limit: float = request.app.state.settings.request_timeout
            request = JSONRequest(request.scope, request.receive)
            gone = asyncio.Event()
            try:
                async with asyncio.timeout(limit) as deadline:
                    await request.json()
                    async with _watch(request.receive, gone, deadline):
                        return await handle(request)
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


@contextlib.asynccontextmanager
async def _watch(
    receive: Receive, gone: asyncio.Event, deadline: asyncio.Timeout
) -> AsyncIterator[None]:
    """While inside, a client that goes away sets `gone` and moves the deadline to now."""

    async def wait() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        gone.set()
        deadline.reschedule(asyncio.get_running_loop().time())

    watcher = asyncio.create_task(wait())
    try:
        yield
    finally:
        watcher.cancel()

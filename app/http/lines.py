"""One of many requests that came together, in a stream or in a file: it is answered as if it came alone."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from fastapi import Request
from pydantic import TypeAdapter, ValidationError
from starlette.responses import Response
from starlette.types import Scope

from heedful.app import errors
from heedful.app.http import request_record
from heedful.app.http.large_bodies import check_counts
from heedful.app.schemas import unknown_fields
from heedful.app.state import state_of
from heedful.runtime.errors import Overloaded, RequestError, TimedOut

log = logging.getLogger("heedful.access")

RETRY_SECONDS = 0.1
"""Time between two tries while the queue is full; a refused client is told whole seconds."""


@dataclass(frozen=True, slots=True)
class InferenceEndpoint:
    """What an inference route reads, and what answers it."""

    path: str
    body_type: TypeAdapter[Any]
    answer: Callable[[Any, Request], Awaitable[Response]]
    read: Callable[[Scope, bytes], Any]
    """A request's body -> a JSON value. Raises MalformedBody, BodyTooLarge."""

    def validated(self, value: object, entry: request_record.Record) -> Any:
        """The body; notes fields that are ignored. Raises BadInput with pydantic's first error."""
        try:
            body = self.body_type.validate_python(value)
        except ValidationError as error:
            raise errors.bad_input(error.errors(include_url=False)) from None
        entry.ignored = unknown_fields.ignored(body)
        return body


async def answer(
    scope: Scope,
    endpoint: InferenceEndpoint,
    size: int,
    value: Callable[[], object],
    limit: float | None,
    *,
    bulk: bool,
) -> tuple[Response, request_record.Record]:
    """Answer one body, a line of `size` bytes, within `limit` seconds, and count it as a request.

    `value` reads it; it is called in a thread where the line is large.
    Waits while the queue is full, and tries again.
    """
    entry = request_record.Record(request_record.new_id(), endpoint.path, bulk=bulk)
    state = state_of(scope["app"])
    scope = {**scope}
    request_record.attach(scope, entry)
    request = Request(scope)

    def read() -> Any:
        found = value()
        check_counts(found, state.settings.max_batch_inputs)
        return endpoint.validated(found, entry)

    try:
        async with asyncio.timeout(limit):
            body = await state.large.call(size, read)
            response = await _patiently(endpoint, body, request)
    except TimeoutError:
        response = errors.respond(entry, TimedOut(f"not answered within {limit:g} s"))
    except RequestError as error:
        response = errors.respond(entry, error)
    except Exception:  # the other lines have their answers
        log.exception("a line failed", extra={"request_id": entry.id, "route": endpoint.path})
        response = errors.respond(entry, errors.Internal())
    state.metrics.request(entry, response.status_code, time.perf_counter())
    return response, entry


async def _patiently(endpoint: InferenceEndpoint, body: Any, request: Request) -> Response:
    while True:
        try:
            return await endpoint.answer(body, request)
        except Overloaded:
            await asyncio.sleep(RETRY_SECONDS)

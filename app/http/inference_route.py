"""InferenceRoute: reads, checks and answers a request, and each line of NDJSON."""

import asyncio
import inspect
import logging
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from fastapi import Request
from fastapi.routing import APIRoute
from pydantic import BaseModel, TypeAdapter, ValidationError
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from heedful.app import errors
from heedful.app.errors import MalformedBody
from heedful.app.http import body, ndjson
from heedful.app.http.request_record import (
    CLIENT_CLOSED,
    CLIENT_GONE,
    RECORD,
    Record,
    Timing,
    new_id,
)
from heedful.app.http.responses import repeatable
from heedful.app.schemas.openapi_responses import Documented, error_responses
from heedful.app.schemas.response_bodies import ErrorEnvelope
from heedful.app.state import AppState
from heedful.runtime.answers import Result
from heedful.runtime.engine.work import Request as EngineRequest
from heedful.runtime.engine.work import Steps, Waits
from heedful.runtime.errors import Overloaded, RequestError, TimedOut
from heedful.runtime.inference import Inference
from heedful.runtime.model_registry import Task

log = logging.getLogger("heedful.access")

T = TypeVar("T")

LARGE_BYTES = 64 * 1024
"""A smaller body is read in a few milliseconds at most; 16 MiB of trees take seconds."""
RETRY_SECONDS = 0.1
"""Between two tries of a line of NDJSON while the queue is full. `Retry-After` names whole seconds."""
_READER = ThreadPoolExecutor(1, "bodies")
"""One thread: more would leave the event loop a smaller share of the interpreter's lock."""


class InferenceRequest(Request):
    """A request as endpoints see it: its record, its model, and the engine that answers it."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        super().__init__(scope, receive)
        self.record: Record = scope[RECORD]
        self.service_state: AppState = scope["app"].state.heedful

    def bind(self, task: Task, model: str | None) -> Inference:
        """The model that answers, by its name or an alias. Raises Unavailable, UnknownModel, WrongTask."""
        service = self.service_state.service
        # A loaded model's name is no alias.
        if model is not None and model not in service.registry.cards:
            model = self.service_state.settings.aliases.get(model, model)
        inference = service.bind(task, model)
        self.record.model = inference.model.card.name
        return inference

    def truncates(self, truncate: bool | None) -> bool:
        """Whether long texts are cut: the request's `truncate`, else the operator's setting."""
        return self.service_state.settings.truncate if truncate is None else truncate

    async def run(
        self, request: EngineRequest[Result[T]], write: Callable[[T], Steps[Any]] | None = None
    ) -> Result[Any]:
        """The result of the engine's request, with its counts and times recorded.

        `write` makes the answer from the result's value, in steps too. Raises as `Service.answer`.
        """
        request.steps = self._recorded(request.steps, request.waits, write)
        return await self.service_state.service.answer(request, bulk=self.record.bulk)

    def _recorded(
        self, steps: Steps[Result[T]], waits: Waits, write: Callable[[T], Steps[Any]] | None
    ) -> Steps[Result[Any]]:
        """The steps, and then those of writing their result's value."""
        began, record = time.perf_counter(), self.record
        result: Result[Any] = yield from steps
        record.result, record.answered = result, time.perf_counter()
        parse, queue = record.answered - began - waits.total, max(waits.total - waits.batches, 0.0)
        record.timing = Timing(parse, queue, waits.batches)
        if write:
            result.value = yield from write(result.value)
        return result


Endpoint = Callable[[Any, InferenceRequest], Awaitable[Response]]
Read = Callable[[Record, bytes], Any]
"""A request's record and content -> its JSON value. Raises MalformedBody, BodyTooLarge, BadInput."""


class InferenceRoute(APIRoute):
    """A route whose endpoint takes a validated `body` and the `request`.

    FastAPI's router calls it, and its OpenAPI document describes it.
    """

    takes_ndjson = True
    envelope: type[BaseModel] = ErrorEnvelope

    def __init__(
        self, path: str, endpoint: Endpoint, *, responses: Documented, **options: Any
    ) -> None:
        statuses = (400, 401, 404, 413, 422, 429, 500, 503, 504)
        responses = responses | error_responses(*statuses, envelope=self.envelope)
        super().__init__(path, endpoint, responses=responses, **options)
        self._endpoint = endpoint
        annotation: Any = inspect.signature(endpoint).parameters["body"].annotation
        self._body_type = TypeAdapter(annotation)
        # In place of FastAPI's handler, which would read the whole body and validate it with other messages.
        self.app = self._serve

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        record: Record = scope[RECORD]
        if record.media != body.NDJSON:
            response = await self.answer(InferenceRequest(scope, receive))
            await response(scope, receive, send)
            return
        if not self.takes_ndjson:
            raise MalformedBody("this route reads no NDJSON", code="wrong_content_type")
        if record.header(b"content-encoding").strip().lower() not in ("", "identity"):
            raise MalformedBody("NDJSON is read uncompressed only", code="wrong_content_encoding")
        await ndjson.stream(partial(self._answer_line, scope), scope, receive, send)

    async def _answer_line(self, scope: Scope, number: int, line: bytes) -> bytes:
        """Answer and count a line as a request, which waits while the queue is full. Returns the line of its answer.

        That is {"line", "id"?, "headers"?, "answer"} or {"line", "id"?, "error"}.
        """
        record = Record(new_id(), self.path, bulk=scope[RECORD].bulk)
        head: dict[str, Any] = {"line": number}

        async def receive() -> Message:
            return {"type": "http.request", "body": line}

        def read(_: Record, content: bytes) -> Any:
            value = body.parse_json(content)
            if isinstance(value, dict) and "id" in value:
                head["id"] = repeatable(value.pop("id"), "id")
            return value

        # Without headers: `Accept` is about the stream, and each line's answer is JSON.
        request = InferenceRequest({**scope, RECORD: record, "headers": []}, receive)
        try:
            response = await self.answer(request, read, self._retry_while_overloaded)
        except Exception:  # the other lines have their answers
            log.exception("a line failed", extra={"request_id": record.id, "route": self.path})
            response = record.refuse(errors.Internal())
        request.service_state.metrics.request(record, response.status_code, time.perf_counter())
        if response.status_code != 200:
            return ndjson.written_line(head, bytes(response.body)[1:-1])  # {"error": {..}}
        if headers := record.notes():
            head["headers"] = headers
        return ndjson.written_line(head, b'"answer":' + response.body)

    async def _retry_while_overloaded(self, fields: Any, request: InferenceRequest) -> Response:
        """The endpoint's answer, once the queue has room for it."""
        while True:
            try:
                return await self._endpoint(fields, request)
            except Overloaded:
                await asyncio.sleep(RETRY_SECONDS)

    def read(self, record: Record, content: bytes) -> Any:
        """The JSON of a body whose Content-Type is JSON. Raises MalformedBody, BodyTooLarge."""
        media = record.media
        if media != "application/json" and not (
            media.startswith("application/") and media.endswith("+json")
        ):
            raise MalformedBody(
                "send the header 'Content-Type: application/json'", code="wrong_content_type"
            )
        return body.parse_json(content)

    async def answer(
        self, request: InferenceRequest, read: Read | None = None, endpoint: Endpoint | None = None
    ) -> Response:
        """Read the request's body, check it, call the endpoint, and map errors to answers.

        Ends at the time limit and when the client closes: cancelling the endpoint drops its work in the engine.
        `read` and `endpoint` replace the route's.
        """
        record, state = request.record, request.service_state
        limit, gone = state.settings.request_timeout, request.scope.get(CLIENT_GONE, bool)
        deadline = asyncio.timeout(None)
        try:
            async with deadline:
                state.deadlines.add(deadline, limit, gone)
                content = await body.read(record, request.receive, state.settings.max_body_bytes)
                if len(content) <= LARGE_BYTES:
                    fields = self._validate(request, read or self.read, content)
                else:
                    state.service.trim_later()  # a body takes memory even if it is refused
                    fields = await asyncio.get_running_loop().run_in_executor(
                        _READER, self._validate, request, read or self.read, content
                    )
                return await (endpoint or self._endpoint)(fields, request)
        except RequestError as error:
            return record.refuse(error)
        except ClientDisconnect:
            return Response(status_code=CLIENT_CLOSED)
        except TimeoutError:
            if not deadline.expired():
                raise
            if gone():
                return Response(status_code=CLIENT_CLOSED)
            message = f"not answered within {limit:g} s; send fewer inputs, or try later"
            return record.refuse(TimedOut(message))
        finally:
            state.deadlines.remove(deadline)

    def _validate(self, request: InferenceRequest, read: Read, content: bytes) -> Any:
        """The fields of the body. Raises MalformedBody, BodyTooLarge, TooManyInputs, BadInput."""
        value = read(request.record, content)
        max_inputs = request.service_state.settings.max_batch_inputs
        try:
            fields = self._body_type.validate_python(value, context=max_inputs)
        except ValidationError as error:
            raise errors.bad_input(error.errors(include_url=False)) from None
        request.record.ignored = fields.ignored()
        return fields

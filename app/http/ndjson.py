"""application/x-ndjson on the inference routes: a request a line, its answer or error a line, in order.

The first answers leave while the client still sends: it has to read and send at the same time, as curl does.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import orjson
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from heedful.app import errors
from heedful.app.http.body import NDJSON, parse
from heedful.app.http.request_record import Record
from heedful.app.http.responses import repeatable
from heedful.app.state import state_of
from heedful.runtime.errors import RequestError, TimedOut, Unavailable

MAX_LINES = 64
"""Lines in flight of one request: as many as make a good batch."""

Read = Callable[[Record, bytes], Any]
"""A line's record and bytes -> its JSON value. Raises MalformedBody, BodyTooLarge, BadInput."""
AnswerLine = Callable[[Scope, bytes, Read], Awaitable[tuple[Response, Record]]]
"""Answers one line, with the function that reads it, as a request of its own."""


async def stream(
    answer: AnswerLine, scope: Scope, receive: Receive, send: Send, *, limit: float, max_bytes: int
) -> None:
    """Answer every line. `limit` seconds bound how long a line is sent, and not read; `answer` bounds itself.

    A line of more than `max_bytes` ends the stream with its error, and so does the first one that comes after SIGTERM.
    At most `max_bytes` are in flight.
    """
    # Every line's answer is JSON: what the client accepts is the answer as a whole.
    others = [(name, value) for name, value in scope["headers"] if name != b"accept"]
    scope = {**scope, "headers": others}
    queue: asyncio.Queue[asyncio.Task[bytes] | None] = asyncio.Queue(MAX_LINES)
    budget = _Budget(max_bytes)
    headers = [(b"content-type", NDJSON.encode())]

    async def send_on(message: Message) -> None:
        async with asyncio.timeout(limit):
            await send(message)

    async def write() -> None:
        task = await queue.get()
        # Not before the body is read: a client that expects 100 Continue gets it by the first read.
        await send_on({"type": "http.response.start", "status": 200, "headers": headers})
        while task is not None:
            body = await task
            await send_on({"type": "http.response.body", "body": body, "more_body": True})
            task = await queue.get()
        await send_on({"type": "http.response.body", "body": b""})

    async def answer_line(number: int, line: bytes) -> bytes:
        try:
            return await _answered(answer, scope, number, line)
        finally:
            budget.give_back(len(line))

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(write())
            number = 0
            try:
                async for line in _lines(receive, limit, max_bytes):
                    if state_of(scope["app"]).service.stopping:
                        raise Unavailable(
                            "the service is stopping: send this line and the rest again"
                        )
                    if line.strip():
                        await budget.take(len(line))
                        await queue.put(group.create_task(answer_line(number, line)))
                    number += 1
            except RequestError as error:
                await queue.put(group.create_task(_refused(number, error)))
            await queue.put(None)
    except* (ClientDisconnect, TimeoutError):
        pass  # it does not send or read any more: what was in flight is dropped


async def _lines(receive: Receive, limit: float, max_bytes: int) -> AsyncIterator[bytes]:
    """The body's lines as they come, each within `limit` seconds after the one before was taken.

    Raises BodyTooLarge, TimedOut, ClientDisconnect.
    """
    clock = asyncio.get_running_loop().time
    line = bytearray()
    deadline = clock() + limit
    more = True
    while more:
        try:
            async with asyncio.timeout_at(deadline):
                message = await receive()
        except TimeoutError:
            raise TimedOut(f"no line came within {limit:g} s") from None
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        more = message.get("more_body", False)
        for number, part in enumerate(message.get("body", b"").split(b"\n")):
            if number:  # the part before has ended its line
                yield bytes(line)
                line.clear()
                deadline = clock() + limit
            line += part
            if len(line) > max_bytes:
                raise errors.line_too_long(max_bytes)
    if line:
        yield bytes(line)


async def _answered(answer: AnswerLine, scope: Scope, number: int, line: bytes) -> bytes:
    """The answer's line: {"line", "id"?, "headers"?, "answer"} or {"line", "id"?, "error"}."""
    head: dict[str, Any] = {"line": number}

    def read(_: Record, content: bytes) -> Any:
        value = parse(content)
        if isinstance(value, dict) and "id" in value:
            head["id"] = repeatable(value.pop("id"), "id")
        return value

    response, record = await answer(scope, line, read)
    if response.status_code == 200:
        if headers := record.notes():
            head["headers"] = headers
        return _line(head, b'"answer":' + response.body)
    return _line(head, bytes(response.body)[1:-1])  # {"error": {..}}


async def _refused(number: int, error: RequestError) -> bytes:
    return _line({"line": number}, errors.envelope(error)[1:-1])


def _line(head: dict[str, Any], rest: bytes) -> bytes:
    return orjson.dumps(head)[:-1] + b"," + rest + b"}\n"


class _Budget:
    """Bytes of lines in flight."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._used = 0
        self._freed = asyncio.Event()

    async def take(self, count: int) -> None:
        """Wait until that many fit; one alone always does."""
        while self._used and self._used + count > self._limit:
            self._freed.clear()
            await self._freed.wait()
        self._used += count

    def give_back(self, count: int) -> None:
        self._used -= count
        self._freed.set()

"""application/x-ndjson on the inference routes: each line is a request, and gets a line with its answer or error.

Answers come in the order of the lines, the first of them while the client still sends: it has to read and send at the
same time, as curl does.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import orjson
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope, Send

from heedful.app import errors
from heedful.app.http.body import NDJSON
from heedful.app.state import state_of
from heedful.runtime.errors import RequestError, TimedOut, Unavailable

MAX_LINES = 64
"""Lines of a request that are in flight: as many as make a good batch."""


async def stream(
    answer: Callable[[int, bytes], Awaitable[bytes]], scope: Scope, receive: Receive, send: Send
) -> None:
    """Send what `answer` makes of each line's number and bytes.

    A client may take `request_timeout` to send a line, and to read; `answer` has its own limit. A line of more than
    `max_body_bytes` ends the stream with its error, and so does the first line after SIGTERM. At most
    `max_body_bytes` are in flight.
    """
    state = state_of(scope["app"])
    limit, max_bytes = state.settings.request_timeout, state.settings.max_body_bytes
    queue: asyncio.Queue[asyncio.Task[bytes] | None] = asyncio.Queue(MAX_LINES)
    budget = _Budget(max_bytes)
    headers = [(b"content-type", NDJSON.encode())]

    async def send_on(message: Message) -> None:
        async with asyncio.timeout(limit):
            await send(message)

    async def write() -> None:
        task = await queue.get()
        # After the body's first read, by which a client that expects 100 Continue gets it.
        await send_on({"type": "http.response.start", "status": 200, "headers": headers})
        while task is not None:
            body = await task
            await send_on({"type": "http.response.body", "body": body, "more_body": True})
            task = await queue.get()
        await send_on({"type": "http.response.body", "body": b""})

    async def answer_within_budget(number: int, line: bytes) -> bytes:
        try:
            return await answer(number, line)
        finally:
            budget.give_back(len(line))

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(write())
            number = 0
            try:
                async for line in _lines(receive, limit, max_bytes):
                    if state.service.stopping:
                        raise Unavailable(
                            "the service is stopping: send this line and the rest again"
                        )
                    if line.strip():
                        await budget.take(len(line))
                        await queue.put(group.create_task(answer_within_budget(number, line)))
                    number += 1
            except RequestError as error:
                await queue.put(group.create_task(_error_line(number, error)))
            await queue.put(None)
    except* (ClientDisconnect, TimeoutError):
        pass  # the client has stopped sending or reading: what was in flight is dropped


async def _lines(receive: Receive, limit: float, max_bytes: int) -> AsyncIterator[bytes]:
    """The body's lines as they come, each within `limit` seconds after its predecessor was taken.

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
            if number:  # a line break precedes this part
                yield bytes(line)
                line.clear()
                deadline = clock() + limit
            line += part
            if len(line) > max_bytes:
                reason = f"a line is longer than {max_bytes} bytes: send fewer inputs in it"
                raise errors.BodyTooLarge(reason)
    if line:
        yield bytes(line)


async def _error_line(number: int, error: RequestError) -> bytes:
    return written_line({"line": number}, errors.envelope(error)[1:-1])


def written_line(head: dict[str, Any], rest: bytes) -> bytes:
    """The fields of `head`, and those written in `rest`."""
    return orjson.dumps(head)[:-1] + b"," + rest + b"}\n"


class _Budget:
    """Bytes of lines in flight."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._used = 0
        self._freed = asyncio.Event()

    async def take(self, count: int) -> None:
        """Wait until `count` bytes fit. While no line is in flight, any do."""
        while self._used and self._used + count > self._limit:
            self._freed.clear()
            await self._freed.wait()
        self._used += count

    def give_back(self, count: int) -> None:
        self._used -= count
        self._freed.set()

"""application/x-ndjson on the inference routes: each line is a request, and gets a line with its answer or error.

Answers come in the order of the lines, the first of them while the client still sends: it has to read and send at the
same time, as curl does.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
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
    answer: Callable[[int, bytes], Coroutine[Any, Any, bytes]],
    scope: Scope,
    receive: Receive,
    send: Send,
) -> None:
    """Send what `answer` makes of each line's number and bytes.

    A client may take `request_timeout` to send a line, and to read; `answer` has its own limit. A line of more than
    `max_body_bytes` ends the stream with its error, and so does the first line after SIGTERM. At most
    `max_body_bytes` are in flight.
    """
    state = state_of(scope["app"])
    limit, max_bytes = state.settings.request_timeout, state.settings.max_body_bytes
    queue: asyncio.Queue[asyncio.Task[bytes] | None] = asyncio.Queue(MAX_LINES)
    in_flight: dict[asyncio.Task[bytes], int] = {}  # bytes of the line that a task answers
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

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(write())
            number = 0
            try:
                async for line in _lines(receive, limit, max_bytes):
                    if state.service.state == "stopping":
                        raise Unavailable(
                            "the service is stopping: send this line and the rest again"
                        )
                    if line.strip():
                        while in_flight and sum(in_flight.values()) + len(line) > max_bytes:
                            await asyncio.wait(in_flight, return_when=asyncio.FIRST_COMPLETED)
                        task = group.create_task(answer(number, line))
                        in_flight[task] = len(line)
                        task.add_done_callback(in_flight.pop)
                        await queue.put(task)
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

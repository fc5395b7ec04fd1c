"""Content codings (RFC 9110, 8.4): bodies that are compressed, and answers that a client wants compressed.

Starlette's GZipMiddleware has no zstd and compresses in the event loop; starlette-compress too.
"""

import asyncio
import gzip
import io
import zlib
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import zstandard
from isal import igzip
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from heedful.app.errors import MalformedBody, body_too_large
from heedful.app.http import request_record

MIN_BYTES = 16 * 1024
"""Smaller answers are sent as they are: most clients ask for compression always, and it costs more than it saves."""
_MAX_WINDOW = 8 * 1024 * 1024  # bytes; what a decoder of zstd has to support (RFC 9659)
_COMPRESSING = ThreadPoolExecutor(1, "compress")
"""One thread: several would take the processor from the event loop. One of a low priority would sometimes keep the
interpreter's lock while it waits for a processor."""


async def decoded(body: bytes, coding: str, limit: int) -> bytes:
    """The body without its coding. Raises MalformedBody, BodyTooLarge beyond `limit` bytes."""
    if coding in ("", "identity"):
        return body
    if coding not in ("gzip", "x-gzip", "deflate", "zstd"):
        raise MalformedBody(
            f"Content-Encoding: {coding[:20]} is not read here; send gzip, deflate, zstd or identity",
            code="wrong_content_encoding",
        )
    try:
        inflated = await asyncio.to_thread(_inflate, body, coding, limit + 1)
    except (OSError, EOFError, zlib.error, zstandard.ZstdError) as error:
        raise MalformedBody(
            f"the body is not {coding}: {error}", code="wrong_content_encoding"
        ) from None
    if len(inflated) > limit:
        raise body_too_large(limit)
    return inflated


def _inflate(body: bytes, coding: str, limit: int) -> bytes:
    """At most `limit` bytes."""
    if coding == "zstd":
        decoder = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW)
        with decoder.stream_reader(body, read_across_frames=True) as reader:
            return b"".join(_read(reader, limit))
    if coding == "deflate":  # zlib's format (RFC 9110, 8.4.1.2)
        inflator = zlib.decompressobj()
        inflated = inflator.decompress(body, limit)
        if len(inflated) < limit and (not inflator.eof or inflator.unused_data):
            raise EOFError("it has no end, or goes on behind it")
        return inflated
    with gzip.GzipFile(fileobj=io.BytesIO(body)) as file:
        return file.read(limit)


def _read(reader: zstandard.ZstdDecompressionReader, limit: int) -> list[bytes]:
    parts: list[bytes] = []
    while limit > 0 and (part := reader.read(limit)):
        parts.append(part)
        limit -= len(part)
    return parts


class Compressed:
    """Compresses whole JSON answers of at least MIN_BYTES for clients that accept zstd or gzip."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        coding = accepted(scope) if scope["type"] == "http" else None
        if coding is None:
            return self._app(scope, receive, send)
        return self._compressed(coding, scope, receive, send)

    async def _compressed(self, coding: str, scope: Scope, receive: Receive, send: Send) -> None:
        head: Message | None = None

        async def send_on(message: Message) -> None:
            nonlocal head
            if message["type"] == "http.response.start":
                head = message
                return
            if head is not None:
                start, head = head, None
                if not message.get("more_body") and _worth_it(start, message):
                    start, message = await _compress(start, message, coding)
                await send(start)
            await send(message)

        await self._app(scope, receive, send_on)


def accepted(scope: Scope) -> str | None:
    """The coding to use: the one of the larger weight, zstd where they are equal; None without any."""
    offered = request_record.accepts(scope, b"accept-encoding")
    if not offered:
        return None
    best = max(("zstd", "gzip"), key=lambda coding: offered.get(coding, 0.0))
    return best if offered.get(best) else None


def _worth_it(start: Message, message: Message) -> bool:
    headers = dict(start["headers"])
    return (
        len(message.get("body", b"")) >= MIN_BYTES
        and headers.get(b"content-type") == b"application/json"
        and b"content-encoding" not in headers
    )


async def _compress(start: Message, message: Message, coding: str) -> tuple[Message, Message]:
    body: bytes = message["body"]
    compress: Callable[[bytes], bytes] = (
        zstandard.ZstdCompressor(level=1).compress
        if coding == "zstd"
        else partial(igzip.compress, compresslevel=1, mtime=0)  # three times as fast as zlib
    )
    body = await asyncio.get_running_loop().run_in_executor(_COMPRESSING, compress, body)
    kept = [pair for pair in start["headers"] if pair[0] != b"content-length"]
    headers = [
        *kept,
        (b"content-length", str(len(body)).encode()),
        (b"content-encoding", coding.encode()),
        (b"vary", b"Accept-Encoding"),
    ]
    return {**start, "headers": headers}, {**message, "body": body}

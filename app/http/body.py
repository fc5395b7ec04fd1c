"""A request's body: its limits, its bytes, and strict JSON."""

import asyncio
import codecs
import contextlib
import gzip
import io
import json
import math
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import orjson
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from heedful.app.errors import BodyTooLarge, MalformedBody, body_too_large
from heedful.app.http.request_record import RECORD, Record

NDJSON = "application/x-ndjson"
"""A request a line (app.http.ndjson)."""
MAX_DEPTH = 64
"""Levels of lists and objects in a body: no route needs as many, and code that walks them uses the stack."""
MAX_CONTAINERS = 2**21
"""Lists and objects in a body. 16 MiB of trees hold 1.3 million if each word is a letter."""

_STEPS = bytes.maketrans(b'"[{]}', b"\x00\x01\x01\xff\xff")
_OTHER_BYTES = bytes(set(range(256)) - set(b'"[{]}'))


class BodyLimit:
    """Refuses a request whose Content-Length is more than `limit` bytes, without reading it.

    For NDJSON the limit is that of a line. A POST to a path in `posted` goes there, all else to `app`.
    """

    def __init__(self, app: ASGIApp, *, limit: int, posted: Mapping[str, ASGIApp]) -> None:
        self._app, self._limit, self._posted = app, limit, posted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            record: Record = scope[RECORD]
            announced = record.headers.get(b"content-length", b"")
            if announced.isdigit() and int(announced) > self._limit and record.media != NDJSON:
                raise body_too_large(self._limit)
            if scope["method"] == "POST" and scope["path"] in self._posted:
                await self._posted[scope["path"]](scope, receive, send)
                return
        await self._app(scope, receive, send)


async def read(record: Record, receive: Receive, limit: int) -> bytes:
    """The body, decompressed. Raises MalformedBody, ClientDisconnect, BodyTooLarge beyond `limit` bytes."""
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > limit:
            raise body_too_large(limit)
        more = message.get("more_body", False)
    body = b"".join(parts)
    if b"content-encoding" not in record.headers:
        return body
    coding = record.header(b"content-encoding").strip().lower()
    return await _decoded(body, coding, limit)


async def _decoded(body: bytes, coding: str, limit: int) -> bytes:
    """The body without its content coding (RFC 9110, 8.4). Raises MalformedBody, BodyTooLarge beyond `limit` bytes."""
    if coding in ("", "identity"):
        return body
    if coding not in ("gzip", "x-gzip", "deflate"):
        raise MalformedBody(
            f"Content-Encoding: {coding[:20]} is not supported; send gzip, deflate or identity",
            code="wrong_content_encoding",
        )
    try:
        inflated = await asyncio.to_thread(_inflate, body, coding, limit + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise MalformedBody(
            f"the body is not {coding}: {error}", code="wrong_content_encoding"
        ) from None
    if len(inflated) > limit:
        raise body_too_large(limit)
    return inflated


def _inflate(body: bytes, coding: str, limit: int) -> bytes:
    """At most `limit` bytes of the body. Raises OSError, EOFError, zlib.error."""
    if coding == "deflate":  # zlib's format (RFC 9110, 8.4.1.2)
        inflator = zlib.decompressobj()
        inflated = inflator.decompress(body, limit)
        if len(inflated) < limit and (not inflator.eof or inflator.unused_data):
            raise EOFError("its end is missing, or other bytes follow it")
        return inflated
    with gzip.GzipFile(fileobj=io.BytesIO(body)) as file:
        return file.read(limit)


def parse_json(body: bytes) -> Any:
    """Read JSON strictly: no NaN, no Infinity, UTF-8, at most MAX_DEPTH deep and MAX_CONTAINERS lists and objects.

    A leading byte order mark is ignored (RFC 8259, 8.1). Lone surrogates pass: the runtime refuses them and names the
    field. Raises MalformedBody, BodyTooLarge.
    """
    body = body.removeprefix(codecs.BOM_UTF8)
    if body.count(b"[") + body.count(b"{") > MAX_DEPTH:  # fewer are neither too deep nor too many
        _check_containers(body)
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if b"\\u" in body:  # it may hold lone surrogates
            with contextlib.suppress(ValueError, RecursionError):
                return json.loads(
                    body.decode(), parse_constant=_finite_float, parse_float=_finite_float
                )
        try:
            body.decode()
        except UnicodeDecodeError as fault:
            place = f"byte 0x{body[fault.start]:02x} at {fault.start}"
            raise MalformedBody(f"the body is not UTF-8 ({place}): send UTF-8") from None
        raise MalformedBody(f"the body is not JSON: {error}") from None


def _check_containers(body: bytes) -> None:
    """Count lists and objects before the body is parsed. Raises MalformedBody, BodyTooLarge.

    Parsing too many of them would hold the interpreter's lock, and take 30 times the body's bytes.
    """
    unescaped = body.replace(rb"\\", b"").replace(rb"\"", b"")
    # 1 where a list or an object begins, -1 where one ends, 0 for a quotation mark.
    steps = np.frombuffer(unescaped.translate(_STEPS, _OTHER_BYTES), np.int8)
    in_text = np.logical_xor.accumulate(steps == 0)
    steps = np.where(in_text, np.int8(0), steps)
    containers = np.count_nonzero(steps == 1)
    if containers > MAX_CONTAINERS:
        raise BodyTooLarge(
            f"the body holds {containers} lists and objects, more than {MAX_CONTAINERS}: "
            "send several requests"
        )
    if np.cumsum(steps, dtype=np.int32).max() > MAX_DEPTH:
        raise MalformedBody(
            f"the body nests lists and objects more than {MAX_DEPTH} deep: send them flatter"
        )


def _finite_float(text: str) -> float:
    """Refuse NaN, Infinity and a number that overflows to it, as orjson does."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number

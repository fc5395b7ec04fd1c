"""Content codings (RFC 9110, 8.4) of requests' bodies. Compressing answers is a proxy's job."""

import asyncio
import gzip
import io
import zlib

from heedful.app.errors import MalformedBody, body_too_large


async def decoded(body: bytes, coding: str, limit: int) -> bytes:
    """The body without its coding. Raises MalformedBody, BodyTooLarge beyond `limit` bytes."""
    if coding in ("", "identity"):
        return body
    if coding not in ("gzip", "x-gzip", "deflate"):
        raise MalformedBody(
            f"Content-Encoding: {coding[:20]} is not read here; send gzip, deflate or identity",
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
    """At most `limit` bytes."""
    if coding == "deflate":  # zlib's format (RFC 9110, 8.4.1.2)
        inflator = zlib.decompressobj()
        inflated = inflator.decompress(body, limit)
        if len(inflated) < limit and (not inflator.eof or inflator.unused_data):
            raise EOFError("it has no end, or goes on behind it")
        return inflated
    with gzip.GzipFile(fileobj=io.BytesIO(body)) as file:
        return file.read(limit)

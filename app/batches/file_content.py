"""A stored file's content as an answer, whole or one range of it."""

import os
import re
from typing import BinaryIO

from starlette.responses import FileResponse
from starlette.types import Receive, Scope, Send

from heedful.app import errors
from heedful.app.errors import RangeNotSatisfiable
from heedful.app.http import request_record, responses

RANGE = re.compile(r"bytes=(?:([0-9]{1,18})-([0-9]{0,18})|-([0-9]{1,18}))", re.IGNORECASE)
"""One range of bytes, such as `bytes=500-`."""


class Content(FileResponse):
    """Of an open file, whose name may be deleted before the answer is sent.

    Starlette refuses a `Range` as text. Here only one range is read, and every other one passed over, as RFC 9110,
    14.2, allows.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        super().__init__(f"/proc/self/fd/{file.fileno()}", media_type=responses.BYTES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._file:
            size = os.fstat(self._file.fileno()).st_size
            begin = _begin(request_record.header(scope, b"range"), size)
            if begin is None:
                others = [(name, value) for name, value in scope["headers"] if name != b"range"]
                await super().__call__({**scope, "headers": others}, receive, send)
            elif begin < size:
                await super().__call__(scope, receive, send)
            else:
                refusal = RangeNotSatisfiable(f"Range: the content has {size} bytes")
                about = {"Content-Range": f"bytes */{size}"}
                answer = errors.respond(request_record.of(scope), refusal, about)
                await answer(scope, receive, send)


def _begin(header: str, size: int) -> int | None:
    """Where the range of a content of `size` bytes begins; None if the header is not one range."""
    found = RANGE.fullmatch(header)
    if found is None:
        return None
    first, last, suffix = found.groups()
    if first is None:
        return max(size - int(suffix), 0)
    return None if last and int(last) < int(first) else int(first)

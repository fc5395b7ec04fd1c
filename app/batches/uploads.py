"""Uploads: what comes of a multipart form is kept in the operator's folder for files, if it can be."""

import errno
import logging
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from fastapi import Request
from starlette.datastructures import FormData
from starlette.formparsers import MultiPartException, MultiPartParser

from heedful.app.errors import InvalidBody, MalformedBody, StorageFull, StorageNotWritable
from heedful.app.http import request_record
from heedful.runtime.errors import BadInput

log = logging.getLogger("heedful.server")

FULL = (errno.ENOSPC, errno.EDQUOT)
NOT_WRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM)
"""Numbers of an OSError: a system makes a disk read-only when it fails."""


class _Parser(MultiPartParser):
    """Starlette's, which keeps what comes in the system's temporary folder: that may be small, or in memory."""

    def __init__(self, request: Request, folder: Path) -> None:
        super().__init__(request.headers, request.stream(), max_files=1, max_fields=8)
        self._folder = folder

    def on_headers_finished(self) -> None:
        super().on_headers_finished()
        if self._current_part.file:
            kept = tempfile.SpooledTemporaryFile(self.spool_max_size, dir=str(self._folder))  # noqa: SIM115  # the form closes it
            self._current_part.file.file.close()
            self._current_part.file.file = kept  # type: ignore[assignment]  # as starlette has it
            self._files_to_close_on_error[-1] = kept


@asynccontextmanager
async def multipart(request: Request, folder: Path) -> AsyncIterator[FormData]:
    """The form of a request, one file at most, which `folder` holds without a name until the block ends.

    Raises BadInput, MalformedBody if it is compressed, InvalidBody, and OSError where the folder cannot take it.
    """
    if request_record.of(request.scope).media != "multipart/form-data":
        raise BadInput("file: send it as multipart/form-data", param="file")
    if request_record.header(request.scope, b"content-encoding").strip().lower() not in (
        "",
        "identity",
    ):
        raise MalformedBody("uploads are read uncompressed only", code="wrong_content_encoding")
    try:
        form = await _Parser(request, folder).parse()
    except MultiPartException as error:
        raise InvalidBody(error.message) from None
    try:
        yield form
    finally:
        await form.close()


@contextmanager
def refused_where_not_stored() -> Iterator[None]:
    """For a block that writes. Raises StorageFull where the disk or a quota has no room, StorageNotWritable."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise StorageFull(
                "the folder for files is full: delete files that are not needed any more, or ask the operator for room"
            ) from error
        if error.errno in NOT_WRITABLE:
            log.error("the folder for files cannot be written to: %s", error)
            raise StorageNotWritable(
                "the folder for files cannot be written to: tell the operator, whose log names the cause"
            ) from error
        raise

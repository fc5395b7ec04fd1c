"""Uploads: what comes of a multipart form is kept in the operator's folder for files, and a full one is told."""

import errno
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from fastapi import Request
from starlette.datastructures import FormData
from starlette.formparsers import MultiPartException, MultiPartParser

from heedful.app import record
from heedful.app.errors import InvalidBody, StorageFull
from heedful.runtime.errors import BadInput


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

    Raises BadInput, InvalidBody, and OSError where the folder cannot take it.
    """
    if record.of(request.scope).media != "multipart/form-data":
        raise BadInput("file: send it as multipart/form-data", param="file")
    try:
        form = await _Parser(request, folder).parse()
    except MultiPartException as error:
        raise InvalidBody(error.message) from None
    try:
        yield form
    finally:
        await form.close()


@contextmanager
def refused_where_full() -> Iterator[None]:
    """Raises StorageFull where what is written in the block has no room on the disk, or in its quota."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise StorageFull(
            "the folder for files is full: delete files that are not needed any more, or ask the operator for room"
        ) from error

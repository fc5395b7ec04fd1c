"""OpenAI's /v1/files."""

import asyncio
import contextlib
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel
from starlette.datastructures import UploadFile
from starlette.responses import Response

from heedful.app.batches.file_content import Content
from heedful.app.batches.file_store import KEPT, place
from heedful.app.batches.listing import After, Page, page
from heedful.app.batches.uploads import multipart, refused_where_not_stored
from heedful.app.errors import NotFound
from heedful.app.http import responses
from heedful.app.state import state_of
from heedful.runtime.errors import BadInput

router = APIRouter(tags=["OpenAI"])

UPLOAD = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file", "purpose"],
                    "properties": {
                        "file": {"type": "string", "format": "binary"},
                        "purpose": {"type": "string"},
                    },
                }
            }
        },
    }
}


class File(BaseModel):
    id: str
    object: Literal["file"]
    bytes: int
    created_at: int
    filename: str
    purpose: str
    status: str


class Files(Page[File]):
    pass


class Deleted(BaseModel):
    id: str
    object: Literal["file"]
    deleted: bool


@router.post(
    "/v1/files",
    responses=responses.documented(File, 400, 401, 403, 413, 422, 504, 507),
    openapi_extra=UPLOAD,
)
async def upload(request: Request) -> Response:
    """Keep a file of requests, a JSON object a line."""
    store = state_of(request.app).files
    folder = store.folder  # refuses before the upload is read
    with refused_where_not_stored():
        folder.mkdir(parents=True, exist_ok=True)
        async with multipart(request, folder) as form:
            file, purpose = form.get("file"), form.get("purpose")
            for name in form:
                if name.startswith("expires_after"):
                    raise BadInput(f"{name}: {KEPT}", param=name, code="unsupported")
            if not isinstance(file, UploadFile):
                raise BadInput(
                    "file: must be a part with a file name, as of curl -F file=@NAME", param="file"
                )
            if not isinstance(purpose, str):
                raise BadInput("purpose: is required; send batch", param="purpose")
            name = responses.repeatable(file.filename or "file", "file")
            purpose = responses.repeatable(purpose, "purpose")
            return responses.json(await asyncio.to_thread(store.add, file.file, name, purpose))


@router.get("/v1/files", responses=responses.documented(Files, 401, 403, 422))
async def files(
    request: Request,
    after: After = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 10_000,
    order: Annotated[
        Literal["asc", "desc"], Query(description="By the time of the upload.")
    ] = "desc",
    purpose: Annotated[str | None, Query(description="Only files of this purpose.")] = None,
) -> Response:
    """The files, the newest first, or with `order=asc` the oldest."""
    store = state_of(request.app).files
    found = await asyncio.to_thread(store.files)
    if order == "asc":
        found.reverse()
    found = [one for one in found if purpose in (None, one["purpose"])]
    if after is not None and all(one["id"] != after for one in found):
        with contextlib.suppress(NotFound):
            # A client that deletes each file of a page names the last of them for the next page.
            deleted = (store.created_at(after), after)
            found = [one for one in found if (place(one) > deleted) == (order == "asc")]
            after = None
    return page(found, after, limit)


@router.get(
    "/v1/files/{file}",
    responses=responses.documented(File, 401, 403, 404),
    openapi_extra=responses.path_parameters("file"),
)
async def file(request: Request) -> Response:
    """A file's description."""
    return responses.json(state_of(request.app).files.file(request.path_params["file"]))


@router.get(
    "/v1/files/{file}/content",
    response_class=Response,
    responses={
        **responses.documented(File, 401, 403, 404, 416),
        200: {"content": responses.BYTES_CONTENT},
        206: {
            "content": responses.BYTES_CONTENT,
            "description": "The range that `Range` asks for.",
        },
    },
    openapi_extra=responses.path_parameters("file"),
)
async def content(request: Request) -> Response:
    """A file's content, or one range of it, as `Range: bytes=500-`."""
    return Content(state_of(request.app).files.open(request.path_params["file"]))


@router.delete(
    "/v1/files/{file}",
    responses=responses.documented(Deleted, 401, 403, 404, 507),
    openapi_extra=responses.path_parameters("file"),
)
async def delete(request: Request) -> Response:
    """Delete a file."""
    name = request.path_params["file"]
    with refused_where_not_stored():
        await asyncio.to_thread(state_of(request.app).files.delete, name)
    return responses.json({"id": name, "object": "file", "deleted": True})

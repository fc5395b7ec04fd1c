"""OpenAI's /v1/files and /v1/batches."""

import asyncio
import os
import re
import time
from typing import Annotated, Any, BinaryIO, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, BeforeValidator, Field
from starlette.datastructures import UploadFile
from starlette.responses import FileResponse, Response
from starlette.types import Receive, Scope, Send

from heedful.app import answers, errors, record
from heedful.app.errors import NotFound, RangeNotSatisfiable
from heedful.app.fast_path import InferenceRoute
from heedful.app.fields import PASS_OVER, refused
from heedful.app.file_store import FileStore, new_id
from heedful.app.state import state_of
from heedful.app.strict_models import StrictModel, few_fields
from heedful.app.uploads import multipart, refused_where_not_stored
from heedful.runtime.errors import BadInput


class CreateRoute(InferenceRoute):
    """Reads its body as an inference route does, but no NDJSON: FastPath refuses it where `read` is another one."""

    @staticmethod
    def read(scope: Scope, body: bytes) -> Any:
        return InferenceRoute.read(scope, body)


router = APIRouter(tags=["OpenAI"])
create_router = APIRouter(route_class=CreateRoute, tags=["OpenAI"])

After = Annotated[str | None, Query(description="Begin behind the one with this id.")]

KEPT = "files are kept until they are deleted: leave it out, and delete them"

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


IGNORED = {"X-Ignored-Fields": {"$ref": "#/components/headers/X-Ignored-Fields"}}


class File(BaseModel):
    id: str
    object: Literal["file"]
    bytes: int
    created_at: int
    filename: str
    purpose: str
    status: str


class Files(BaseModel):
    object: Literal["list"]
    data: list[File]
    first_id: str | None
    last_id: str | None
    has_more: bool


class Deleted(BaseModel):
    id: str
    object: Literal["file"]
    deleted: bool


class CreateBatch(StrictModel):
    model_config = PASS_OVER

    input_file_id: str
    endpoint: str = Field(description="An inference route of this service, as /v1/embeddings.")
    completion_window: str = Field("24h", description="OpenAI's. No effect.")
    metadata: (
        Annotated[
            dict[Annotated[str, Field(max_length=64)], Annotated[str, Field(max_length=512)]],
            BeforeValidator(few_fields),
            Field(max_length=16),
        ]
        | None
    ) = Field(None, description="Repeated in the batch. OpenAI's limits.")
    output_expires_after: Annotated[None, refused(KEPT)] = Field(
        None, description="OpenAI's. Refused."
    )


class Batch(BaseModel):
    id: str
    object: Literal["batch"]
    endpoint: str
    input_file_id: str
    completion_window: str
    status: str
    output_file_id: str | None
    error_file_id: str | None
    errors: dict[str, Any] | None
    created_at: int
    in_progress_at: int | None
    completed_at: int | None
    failed_at: int | None
    cancelling_at: int | None
    cancelled_at: int | None
    request_counts: dict[str, int]
    metadata: dict[str, str] | None


class BatchList(BaseModel):
    object: Literal["list"]
    data: list[Batch]
    first_id: str | None
    last_id: str | None
    has_more: bool


RANGE = re.compile(r"bytes=(?:([0-9]{1,18})-([0-9]{0,18})|-([0-9]{1,18}))", re.IGNORECASE)
"""One range of bytes, such as `bytes=500-`."""


class _Content(FileResponse):
    """Of an open file, whose name may be deleted before the answer is sent.

    Starlette refuses a `Range` as text. Here only one range is read, and every other one passed over, as RFC 9110,
    14.2, allows.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        super().__init__(f"/proc/self/fd/{file.fileno()}", media_type=answers.BYTES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._file:
            size = os.fstat(self._file.fileno()).st_size
            begin = _begin(record.header(scope, b"range"), size)
            if begin is None:
                others = [(name, value) for name, value in scope["headers"] if name != b"range"]
                await super().__call__({**scope, "headers": others}, receive, send)
            elif begin < size:
                await super().__call__(scope, receive, send)
            else:
                refusal = RangeNotSatisfiable(f"Range: the content has {size} bytes")
                about = {"Content-Range": f"bytes */{size}"}
                answer = errors.respond(record.of(scope), refusal, about)
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


@router.post(
    "/v1/files",
    responses=answers.documented(File, 400, 401, 403, 408, 413, 422, 507),
    openapi_extra=UPLOAD,
)
async def upload(request: Request) -> Response:
    """Keep a file of requests, a JSON object a line."""
    store = _store(request)
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
            name = answers.repeatable(file.filename or "file", "file")
            purpose = answers.repeatable(purpose, "purpose")
            return answers.json(await asyncio.to_thread(store.add, file.file, name, purpose))


@router.get("/v1/files", responses=answers.documented(Files, 401, 403, 422))
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
    found = await asyncio.to_thread(_store(request).files)
    if order == "asc":
        found.reverse()
    return _page([one for one in found if purpose in (None, one["purpose"])], after, limit)


@router.get(
    "/v1/files/{file}",
    responses=answers.documented(File, 401, 403, 404),
    openapi_extra=answers.path_parameters("file"),
)
async def file(request: Request) -> Response:
    """A file's description."""
    return answers.json(_store(request).file(request.path_params["file"]))


@router.get(
    "/v1/files/{file}/content",
    response_class=Response,
    responses={
        **answers.documented(File, 401, 403, 404, 416),
        200: {"content": answers.BYTES_CONTENT},
        206: {
            "content": answers.BYTES_CONTENT,
            "description": "The range that `Range` asks for.",
        },
    },
    openapi_extra=answers.path_parameters("file"),
)
async def content(request: Request) -> Response:
    """A file's content, or one range of it, as `Range: bytes=500-`."""
    return _Content(_store(request).open(request.path_params["file"]))


@router.delete(
    "/v1/files/{file}",
    responses=answers.documented(Deleted, 401, 403, 404, 507),
    openapi_extra=answers.path_parameters("file"),
)
async def delete(request: Request) -> Response:
    """Delete a file."""
    name = request.path_params["file"]
    with refused_where_not_stored():
        await asyncio.to_thread(_store(request).delete, name)
    return answers.json({"id": name, "object": "file", "deleted": True})


@create_router.post(
    "/v1/batches",
    responses=answers.documented(Batch, 400, 401, 403, 404, 408, 413, 422, 504, 507)
    | {200: {"model": Batch, "headers": IGNORED}},
)
async def create(body: CreateBatch, request: Request) -> Response:
    """Answer a file's requests in the background."""
    store = _store(request)
    try:
        store.file(body.input_file_id)
    except NotFound as error:
        raise NotFound(str(error), param="input_file_id") from None
    endpoints = state_of(request.app).batch_endpoints
    if body.endpoint not in endpoints:
        known = ", ".join(sorted(endpoints))
        raise BadInput(
            f"endpoint: {body.endpoint[:100]!r} takes no batches; these do: {known}",
            param="endpoint",
        )
    sent = body.model_dump(exclude={"output_expires_after", *(body.model_extra or ())})
    about = {
        **{name: answers.repeatable(value, name) for name, value in sent.items()},
        "id": new_id("batch"),
        "object": "batch",
        "status": "validating",
        "errors": None,
        "output_file_id": None,
        "error_file_id": None,
        "created_at": int(time.time()),
        "in_progress_at": None,
        "completed_at": None,
        "failed_at": None,
        "cancelling_at": None,
        "cancelled_at": None,
        "request_counts": {"total": 0, "completed": 0, "failed": 0},
    }
    with refused_where_not_stored():
        await asyncio.to_thread(store.create_batch, about)
    return answers.json(about)


@router.get("/v1/batches", responses=answers.documented(BatchList, 401, 403, 422))
async def batches(
    request: Request, after: After = None, limit: Annotated[int, Query(ge=1, le=100)] = 20
) -> Response:
    """The batches, the newest first."""
    return _page(await asyncio.to_thread(_store(request).batches), after, limit)


@router.get(
    "/v1/batches/{batch}",
    responses=answers.documented(Batch, 401, 403, 404),
    openapi_extra=answers.path_parameters("batch"),
)
async def batch(request: Request) -> Response:
    """A batch with its state and counts."""
    return answers.json(_store(request).batch(request.path_params["batch"]))


@router.post(
    "/v1/batches/{batch}/cancel",
    responses=answers.documented(Batch, 401, 403, 404, 413, 507),
    openapi_extra=answers.path_parameters("batch"),
)
async def cancel(request: Request) -> Response:
    """End a batch after the lines in flight; what was answered is kept."""
    with refused_where_not_stored():
        return answers.json(_store(request).cancel_batch(request.path_params["batch"]))


def _page(found: list[dict[str, Any]], after: str | None, limit: int) -> Response:
    """At most `limit` of the list, from the one behind the id `after`. Raises BadInput."""
    if after is not None:
        ids = [one["id"] for one in found]
        if after not in ids:
            raise BadInput(
                f"after: {after[:100]!r} is not in the list; send an id of it", param="after"
            )
        found = found[ids.index(after) + 1 :]
    shown = found[:limit]
    return answers.json(
        {
            "object": "list",
            "data": shown,
            "first_id": shown[0]["id"] if shown else None,
            "last_id": shown[-1]["id"] if shown else None,
            "has_more": len(found) > limit,
        }
    )


def _store(request: Request) -> FileStore:
    return FileStore(state_of(request.app).settings.files)

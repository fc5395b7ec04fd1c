"""OpenAI's /v1/batches."""

import asyncio
import time
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field
from starlette.responses import Response
from starlette.types import Scope

from heedful.app.batches.file_store import KEPT, new_id
from heedful.app.batches.listing import After, Page, page
from heedful.app.batches.uploads import refused_where_not_stored
from heedful.app.errors import NotFound
from heedful.app.http import responses
from heedful.app.http.fast_path import InferenceRoute
from heedful.app.http.paths import without_slash
from heedful.app.schemas.base import StrictModel, few_fields
from heedful.app.schemas.unknown_fields import PASS_OVER, refused
from heedful.app.state import state_of
from heedful.runtime.errors import BadInput


class CreateRoute(InferenceRoute):
    """Reads its body as an inference route does, but no NDJSON: FastPath refuses it where `read` is another one."""

    @staticmethod
    def read(scope: Scope, body: bytes) -> Any:
        return InferenceRoute.read(scope, body)


router = APIRouter(tags=["OpenAI"])
create_router = APIRouter(route_class=CreateRoute, tags=["OpenAI"])

IGNORED = {"X-Ignored-Fields": {"$ref": "#/components/headers/X-Ignored-Fields"}}


class CreateBatch(StrictModel):
    model_config = PASS_OVER

    input_file_id: str
    endpoint: Annotated[str, AfterValidator(without_slash)] = Field(
        description="An inference route of this service, as /v1/embeddings."
    )
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


class BatchList(Page[Batch]):
    pass


@create_router.post(
    "/v1/batches",
    responses=responses.documented(Batch, 400, 401, 403, 404, 413, 422, 504, 507)
    | {200: {"model": Batch, "headers": IGNORED}},
)
async def create(body: CreateBatch, request: Request) -> Response:
    """Answer a file's requests in the background."""
    store = state_of(request.app).files
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
        **{name: responses.repeatable(value, name) for name, value in sent.items()},
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
    return responses.json(about)


@router.get("/v1/batches", responses=responses.documented(BatchList, 401, 403, 422))
async def batches(
    request: Request, after: After = None, limit: Annotated[int, Query(ge=1, le=100)] = 20
) -> Response:
    """The batches, the newest first."""
    return page(await asyncio.to_thread(state_of(request.app).files.batches), after, limit)


@router.get(
    "/v1/batches/{batch}",
    responses=responses.documented(Batch, 401, 403, 404),
    openapi_extra=responses.path_parameters("batch"),
)
async def batch(request: Request) -> Response:
    """A batch with its state and counts."""
    return responses.json(state_of(request.app).files.batch(request.path_params["batch"]))


@router.post(
    "/v1/batches/{batch}/cancel",
    responses=responses.documented(Batch, 401, 403, 404, 413, 507),
    openapi_extra=responses.path_parameters("batch"),
)
async def cancel(request: Request) -> Response:
    """End a batch after the lines in flight; what was answered is kept."""
    with refused_where_not_stored():
        return responses.json(
            state_of(request.app).files.cancel_batch(request.path_params["batch"])
        )

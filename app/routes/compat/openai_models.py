"""OpenAI's list of models, with the aliases that the operator has set."""

from typing import Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel
from starlette.responses import Response

from heedful.app.http import responses
from heedful.app.routes.status import ready_service
from heedful.app.state import state_of
from heedful.runtime.errors import UnknownModel

router = APIRouter(tags=["OpenAI"])


class OpenAIModel(BaseModel):
    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class OpenAIModels(BaseModel):
    object: Literal["list"]
    data: list[OpenAIModel]


@router.get("/v1/models", responses=responses.documented(OpenAIModels, 401, 503))
async def models(request: Request) -> Response:
    """The models and their aliases in OpenAI's list format."""
    return responses.json({"object": "list", "data": _models(request)})


@router.get(
    "/v1/models/{model:path}",  # an alias may have a slash, as BAAI/bge-small-en-v1.5
    responses=responses.documented(OpenAIModel, 401, 404, 503),
    openapi_extra=responses.path_parameters("model"),
)
async def model(request: Request) -> Response:
    """One model, by its name or an alias."""
    name = request.path_params["model"]
    listed = _models(request)
    for one in listed:
        if one["id"] == name:
            return responses.json(one)
    known = ", ".join(one["id"] for one in listed)
    raise UnknownModel(f"there is no model {name[:100]!r}; known are: {known}", param="model")


def _models(request: Request) -> list[dict[str, Any]]:
    names = {**ready_service(request).cards, **state_of(request.app).settings.aliases}
    created = state_of(request.app).created
    return [
        {"id": name, "object": "model", "created": created, "owned_by": "heedful"} for name in names
    ]

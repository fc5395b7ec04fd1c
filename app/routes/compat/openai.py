"""OpenAI's embeddings, and its list of models with the aliases that the operator has set."""

from typing import Annotated, Any, Literal, cast

import orjson
from fastapi import APIRouter, Request
from pydantic import BaseModel, Field, Tag
from starlette.responses import Response

from heedful.app.http import responses
from heedful.app.http.inference_route import InferenceRequest, InferenceRoute
from heedful.app.routes.compat import token_ids
from heedful.app.routes.status import ready_service
from heedful.app.schemas import tree_bodies
from heedful.app.schemas.base import FullList, InputList, OpenModel, Text, by_tag
from heedful.app.schemas.openapi_responses import error_responses
from heedful.app.schemas.request_bodies import Dimensions, Long, OutputDtype, Truncate
from heedful.app.state import state_of
from heedful.runtime.answers import as_precision
from heedful.runtime.errors import UnknownModel

router = APIRouter(route_class=InferenceRoute, tags=["OpenAI"])
models_router = APIRouter(tags=["OpenAI"])


def _shape(value: object) -> str | None:
    """The tag of a text, token ids, or a list of either."""
    if isinstance(value, str):
        return "<one>"
    if not isinstance(value, list):
        return None
    if value and type(value[0]) is int:
        return "<ids>"
    return "<ids of many>" if value and isinstance(value[0], list) else "<many>"


class EmbeddingsRequest(OpenModel):
    input: Annotated[
        Annotated[Text, Tag("<one>")]
        | Annotated[InputList[Text], Tag("<many>")]
        | Annotated[FullList[int], Tag("<ids>")]
        | Annotated[InputList[FullList[int]], Tag("<ids of many>")],
        by_tag(_shape, "must be a string or a list of strings"),
        Field(description="One text, a list of them, or token ids of cl100k_base."),
    ]
    model: str = Field(description="A name from /v1/models.")
    encoding_format: Literal["float", "base64"] | None = Field(
        "float",
        description="base64: the same numbers as little-endian float32. null is float, as at OpenAI.",
    )
    dimensions: Dimensions = None
    output_dtype: OutputDtype | None = Field(
        "float",
        description="Voyage's and Mistral's: int8 and uint8 send a byte a value, binary and ubinary a bit.",
    )
    truncate: Truncate = None
    long: Long = Field(
        None, description="mean is the default, unless truncate is sent or HEEDFUL_TRUNCATE set."
    )
    user: str | None = Field(None, description="OpenAI's. Ignored and not stored.")


class Embedding(BaseModel):
    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class Usage(BaseModel):
    prompt_tokens: int
    total_tokens: int


class Embeddings(BaseModel):
    object: Literal["list"]
    data: list[Embedding]
    model: str
    usage: Usage


@router.post("/v1/embeddings", response_model=Embeddings)
async def embeddings(body: EmbeddingsRequest, request: InferenceRequest) -> Response:
    """One vector of length 1 for each input, in order."""
    model = request.bind("embed", body.model)
    inputs = tree_bodies.read_inputs(await _texts(body.input), "input")
    truncate = request.truncates(body.truncate)
    result = await request.run(
        model.embed(
            inputs,
            truncate=truncate,
            mean=body.long == "mean" or (body.truncate is None and not truncate),
            normalize=True,
            dimensions=body.dimensions,
        ),
        lambda rows: responses.rows(
            [
                {
                    "object": "embedding",
                    "index": index,
                    "embedding": responses.base64_of(row)
                    if body.encoding_format == "base64"
                    else row,
                }
                for index, row in enumerate(as_precision(rows, body.output_dtype or "float"))
            ]
        ),
    )
    return responses.json(
        {
            "object": "list",
            "data": orjson.Fragment(result.value),
            "model": result.card.name,
            "usage": {"prompt_tokens": result.tokens, "total_tokens": result.tokens},
        }
    )


async def _texts(value: str | list[str] | list[int] | list[list[int]]) -> str | list[str]:
    """The texts of the field `input`. Raises BadInput for token ids that cannot be decoded."""
    if isinstance(value, str) or not value or isinstance(value[0], str):
        return cast("str | list[str]", value)
    if isinstance(value[0], int):
        [text] = await token_ids.decode([value], "input")
        return text
    return await token_ids.decode(value, "input")


class OpenAIModel(BaseModel):
    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class OpenAIModels(BaseModel):
    object: Literal["list"]
    data: list[OpenAIModel]


@models_router.get("/v1/models", response_model=OpenAIModels, responses=error_responses(401, 503))
async def models(request: Request) -> Response:
    """The models and their aliases in OpenAI's list format."""
    return responses.json({"object": "list", "data": _models(request)})


@models_router.get(
    "/v1/models/{model:path}",  # an alias may have a slash, as BAAI/bge-small-en-v1.5
    response_model=OpenAIModel,
    responses=error_responses(401, 404, 503),
)
async def model(request: Request) -> Response:
    """One model, by its name or an alias."""
    name = request.path_params["model"]
    entries = _models(request)
    for entry in entries:
        if entry["id"] == name:
            return responses.json(entry)
    known = ", ".join(entry["id"] for entry in entries)
    raise UnknownModel(f"there is no model {name[:100]!r}; known are: {known}", param="model")


def _models(request: Request) -> list[dict[str, Any]]:
    names = {**ready_service(request).registry.cards, **state_of(request.app).settings.aliases}
    created = state_of(request.app).slot.table.started
    return [
        {"id": name, "object": "model", "created": created, "owned_by": "heedful"} for name in names
    ]

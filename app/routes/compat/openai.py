"""OpenAI's embeddings route."""

import base64
from typing import Annotated, Literal

import orjson
from fastapi import APIRouter, Request
from pydantic import AfterValidator, BaseModel, Discriminator, Field, Tag
from starlette.responses import Response

from heedful.app.http import binding, responses
from heedful.app.http.fast_path import InferenceRoute
from heedful.app.routes.compat import token_ids
from heedful.app.schemas import given_trees
from heedful.app.schemas.base import FIRST_ERROR, NOT_EMPTY, StrictModel, Text
from heedful.app.schemas.request_bodies import Dimensions, Long, Truncate, not_both
from heedful.app.schemas.unknown_fields import PASS_OVER
from heedful.text.arrays import Floats

router = APIRouter(route_class=InferenceRoute, responses=responses.ERRORS, tags=["OpenAI"])


def _shape(value: object) -> str | None:
    """A text, token ids, or a list of either."""
    if isinstance(value, str):
        return "<one>"
    if not isinstance(value, list):
        return None
    if value and type(value[0]) is int:
        return "<ids>"
    return "<ids of many>" if value and isinstance(value[0], list) else "<many>"


class EmbeddingsRequest(StrictModel):
    model_config = PASS_OVER

    input: Annotated[
        Annotated[Text, Tag("<one>")]
        | Annotated[list[Text], FIRST_ERROR, NOT_EMPTY, Tag("<many>")]
        | Annotated[list[int], FIRST_ERROR, NOT_EMPTY, Tag("<ids>")]
        | Annotated[
            list[Annotated[list[int], FIRST_ERROR, NOT_EMPTY]],
            FIRST_ERROR,
            NOT_EMPTY,
            Tag("<ids of many>"),
        ],
        Discriminator(
            _shape,
            custom_error_type="texts_type",
            custom_error_message="must be a string or a list of strings",
        ),
        Field(description="One text, a list of them, or token ids of cl100k_base."),
    ]
    model: str = Field(description="A name from /v1/models.")
    encoding_format: Literal["float", "base64"] | None = Field(
        "float",
        description="base64: the same numbers as little-endian float32. null is float, as at OpenAI.",
    )
    dimensions: Dimensions = None
    truncate: Truncate = None
    long: Annotated[Long, AfterValidator(not_both)] = Field(
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


@router.post("/v1/embeddings", responses=responses.documented(Embeddings))
async def embeddings(body: EmbeddingsRequest, request: Request) -> Response:
    """One vector of length 1 for each input, in order."""
    model = binding.bind(request, "embed", body.model)
    inputs = given_trees.read_inputs(await _texts(body.input), "input")
    truncate = binding.truncates(request, body.truncate)
    result = await binding.answer(
        request,
        model.embed(
            inputs,
            truncate=truncate,
            mean=body.long == "mean" or (body.truncate is None and not truncate),
            normalize=True,
            dimensions=body.dimensions,
        ),
    )
    rows = binding.record_result(request, result)
    data = [
        {
            "object": "embedding",
            "index": index,
            "embedding": _base64(row) if body.encoding_format == "base64" else row,
        }
        for index, row in enumerate(rows)
    ]
    return responses.json(
        {
            "object": "list",
            "data": orjson.Fragment(await responses.rows(data)),
            "model": model.card.name,
            "usage": {"prompt_tokens": result.tokens, "total_tokens": result.tokens},
        }
    )


async def _texts(given: str | list[str] | list[int] | list[list[int]]) -> str | list[str]:
    """The texts of the field `input`. Raises BadInput for token ids that cannot be decoded."""
    if isinstance(given, str):
        return given
    texts = [item for item in given if isinstance(item, str)]
    if len(texts) == len(given):
        return texts
    if isinstance(given[0], int):
        return (
            await token_ids.decode([[item for item in given if isinstance(item, int)]], "input")
        )[0]
    return await token_ids.decode([item for item in given if isinstance(item, list)], "input")


def _base64(row: Floats) -> str:
    return base64.b64encode(row.astype("<f4").tobytes()).decode()

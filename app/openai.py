"""OpenAI's embeddings route."""

import base64
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
from fastapi import APIRouter, Request
from pydantic import AfterValidator, BaseModel, Field
from starlette.responses import Response

from heedful.app import answers, inference, trees
from heedful.app.requests import InferenceRoute
from heedful.app.schemas import Dimensions, Long, Texts, Truncate, not_both
from heedful.app.trees import Closed

router = APIRouter(route_class=InferenceRoute, responses=answers.ERRORS, tags=["OpenAI"])


class EmbeddingsRequest(Closed):
    input: Texts
    model: str = Field(description="A name from /models.")
    encoding_format: Literal["float", "base64"] = Field(
        "float", description="base64: the same numbers as little-endian float32."
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


@router.post("/v1/embeddings", responses=answers.documented(Embeddings))
async def embeddings(body: EmbeddingsRequest, request: Request) -> Response:
    """One vector of length 1 for each input, in order."""
    model = inference.bind(request, "embed", body.model)
    inputs = trees.read_inputs(body.input, "input")
    truncate = inference.truncates(request, body.truncate)
    result = await model.embed(
        inputs,
        truncate=truncate,
        mean=body.long == "mean" or (body.truncate is None and not truncate),
        normalize=True,
        dimensions=body.dimensions,
    )
    rows = inference.record_result(request, result)
    return answers.json(
        {
            "object": "list",
            "data": [
                {
                    "object": "embedding",
                    "index": index,
                    "embedding": _base64(row) if body.encoding_format == "base64" else row,
                }
                for index, row in enumerate(rows)
            ],
            "model": model.card.name,
            "usage": {"prompt_tokens": result.tokens, "total_tokens": result.tokens},
        }
    )


def _base64(row: npt.NDArray[np.float32]) -> str:
    return base64.b64encode(row.astype("<f4").tobytes()).decode()

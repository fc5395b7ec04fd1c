"""Cohere's embeddings: vectors of the same texts in several types."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter
from pydantic import AfterValidator, BaseModel, Field
from starlette.responses import Response

from heedful.app.http import responses
from heedful.app.http.inference_route import InferenceRequest, InferenceRoute
from heedful.app.schemas.base import FIRST_ERROR, InputList, OpenModel, Text, refused, unsupported
from heedful.app.schemas.request_bodies import Dimensions, OutputDtype
from heedful.runtime.answers import as_precision
from heedful.runtime.engine.work import Steps
from heedful.runtime.inputs import Inputs
from heedful.text.arrays import Floats

router = APIRouter(route_class=InferenceRoute, tags=["Cohere"])

EmbeddingType = Literal[OutputDtype, "base64"]


def _cut_at_the_end(truncate: str | None) -> str | None:
    if truncate == "START":
        raise unsupported("texts are cut at their end only; send END")
    return truncate


class EmbedTextsRequest(OpenModel):
    model: str = Field(description="A name from /models, or an alias.")
    texts: InputList[Text]
    input_type: str | None = Field(None, description="Cohere's. No effect: no model has prompts.")
    embedding_types: (
        Annotated[list[EmbeddingType], FIRST_ERROR, Field(min_length=1, max_length=6)] | None
    ) = Field(
        None, description="float alone is the default. base64: float as little-endian float32."
    )
    output_dimension: Dimensions = None
    truncate: Annotated[Literal["NONE", "END", "START"] | None, AfterValidator(_cut_at_the_end)] = (
        Field(
            None,
            description="END cuts a long text, NONE refuses it, START is refused. By default: the mean of its windows.",
        )
    )
    images: Annotated[None, refused("no model here reads images; send texts")] = None
    inputs: Annotated[None, refused("send texts")] = None
    max_tokens: Annotated[None, refused("texts are cut at the model's length; leave it out")] = None


class ByType(BaseModel):
    id: str
    embeddings: dict[str, list[list[float] | str]]
    texts: list[str]
    response_type: Literal["embeddings_by_type"]
    meta: dict[str, Any] = Field(description="api_version and billed_units.")


@router.post("/v2/embed", response_model=ByType)
async def embed(body: EmbedTextsRequest, request: InferenceRequest) -> Response:
    """Cohere's second version: for each of `embedding_types` a row for each text, in order."""
    model = request.bind("embed", body.model)
    truncate = request.truncates(None if body.truncate is None else body.truncate == "END")
    types: list[EmbeddingType] = list(dict.fromkeys(body.embedding_types or ["float"]))
    inputs = Inputs.from_texts(body.texts, "texts")
    inputs.remedy = "set truncate to END"
    result = await request.run(
        model.embed(
            inputs,
            truncate=truncate,
            mean=body.truncate is None and not truncate,
            normalize=True,
            dimensions=body.output_dimension,
        ),
        lambda rows: _by_type(rows, types),
    )
    return responses.json(
        {
            "id": request.record.id,
            "embeddings": orjson.Fragment(result.value),
            "texts": body.texts,
            "response_type": "embeddings_by_type",
            "meta": {
                "api_version": {"version": "2"},
                "billed_units": {"input_tokens": result.tokens},
            },
        }
    )


def _by_type(rows: Floats, types: Sequence[EmbeddingType]) -> Steps[bytes]:
    """The JSON of the vectors (N, D) under the name of each type."""
    parts = []
    for name in types:
        if name == "base64":
            vectors = yield from responses.rows([responses.base64_of(row) for row in rows])
        else:
            vectors = yield from responses.rows(as_precision(rows, name))
        parts.append(orjson.dumps(name) + b":" + vectors)
    return b"{" + b",".join(parts) + b"}"

"""TEI's routes that compare one text with many by cosine similarity."""

from typing import Annotated

import numpy as np
from fastapi import APIRouter
from pydantic import BaseModel, Field
from starlette.responses import Response

from heedful.app.http import responses
from heedful.app.http.inference_route import InferenceRequest, InferenceRoute
from heedful.app.schemas import openapi_responses, request_bodies
from heedful.app.schemas.base import FIRST_ERROR, IGNORE_UNKNOWN, NOT_EMPTY, StrictModel, Text
from heedful.runtime.inputs import Inputs

router = APIRouter(route_class=InferenceRoute, responses=openapi_responses.ERRORS, tags=["models"])


class Sentences(StrictModel):
    model_config = IGNORE_UNKNOWN

    source_sentence: Text
    sentences: Annotated[list[Text], FIRST_ERROR, NOT_EMPTY]


class Parameters(request_bodies.Truncation):
    model_config = IGNORE_UNKNOWN

    prompt_name: request_bodies.PromptName = None


class SimilarityRequest(request_bodies.Request):
    model_config = IGNORE_UNKNOWN

    inputs: Sentences
    parameters: Parameters | None = None


class RerankRequest(request_bodies.Request, request_bodies.Truncation):
    model_config = IGNORE_UNKNOWN

    query: Text
    texts: Annotated[list[Text], FIRST_ERROR, NOT_EMPTY]
    return_text: bool = False
    raw_scores: bool = Field(False, description="TEI's. No effect: a cosine is its own raw score.")


class Rank(BaseModel):
    index: int = Field(description="Position of the text in the request.")
    text: str = Field(default_factory=str, description="Only with return_text.")
    score: float


@router.post("/similarity", responses=openapi_responses.documented(list[float]))
async def similarity(body: SimilarityRequest, request: InferenceRequest) -> Response:
    """The cosine of the source sentence with each sentence."""
    model = request.bind("embed", body.model)
    result = await request.run(
        model.similarity(
            Inputs([body.inputs.source_sentence], ["inputs.source_sentence"]),
            Inputs.from_texts(body.inputs.sentences, "inputs.sentences"),
            truncate=request.truncates(body.parameters.truncate if body.parameters else None),
        ),
    )
    return responses.json(result.value)


@router.post("/rerank", responses=openapi_responses.documented(list[Rank]))
async def rerank(body: RerankRequest, request: InferenceRequest) -> Response:
    """The texts ranked by their cosine with the query, best first."""
    model = request.bind("embed", body.model)
    result = await request.run(
        model.similarity(
            Inputs([body.query], ["query"]),
            Inputs.from_texts(body.texts, "texts"),
            truncate=request.truncates(body.truncate),
        ),
    )
    scores = result.value
    return responses.json(
        [
            {
                "index": index,
                **({"text": body.texts[index]} if body.return_text else {}),
                "score": scores[index],
            }
            for index in np.argsort(-scores, kind="stable")
        ]
    )

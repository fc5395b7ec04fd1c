"""TEI's routes that compare one text with many by cosine similarity."""

from typing import Annotated

import numpy as np
from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from heedful.app.http import binding, responses
from heedful.app.http.fast_path import InferenceRoute
from heedful.app.schemas import request_bodies
from heedful.app.schemas.base import FIRST_ERROR, NOT_EMPTY, StrictModel, Text
from heedful.app.schemas.unknown_fields import PASS_OVER
from heedful.runtime.inputs import Inputs

router = APIRouter(route_class=InferenceRoute, responses=responses.ERRORS, tags=["models"])


class Sentences(StrictModel):
    model_config = PASS_OVER

    source_sentence: Text
    sentences: Annotated[list[Text], FIRST_ERROR, NOT_EMPTY]


class Parameters(request_bodies.Truncation):
    model_config = PASS_OVER

    prompt_name: request_bodies.PromptName = None


class SimilarityRequest(request_bodies.Request):
    model_config = PASS_OVER

    inputs: Sentences
    parameters: Parameters | None = None


class RerankRequest(request_bodies.Request, request_bodies.Truncation):
    model_config = PASS_OVER

    query: Text
    texts: Annotated[list[Text], FIRST_ERROR, NOT_EMPTY]
    return_text: bool = False
    raw_scores: bool = Field(False, description="TEI's. No effect: a cosine is its own raw score.")


class Rank(BaseModel):
    index: int = Field(description="Position of the text in the request.")
    text: str = Field(default_factory=str, description="Only with return_text.")
    score: float


@router.post("/similarity", responses=responses.documented(list[float]))
async def similarity(body: SimilarityRequest, request: Request) -> Response:
    """The cosine of the source sentence with each sentence."""
    model = binding.bind(request, "embed", body.model)
    result = await binding.answer(
        request,
        model.similarity(
            Inputs([body.inputs.source_sentence], ["inputs.source_sentence"]),
            Inputs.from_texts(body.inputs.sentences, "inputs.sentences"),
            truncate=binding.truncates(
                request, body.parameters.truncate if body.parameters else None
            ),
        ),
    )
    return responses.json(binding.record_result(request, result))


@router.post("/rerank", responses=responses.documented(list[Rank]))
async def rerank(body: RerankRequest, request: Request) -> Response:
    """The texts ranked by their cosine with the query, best first."""
    model = binding.bind(request, "embed", body.model)
    result = await binding.answer(
        request,
        model.similarity(
            Inputs([body.query], ["query"]),
            Inputs.from_texts(body.texts, "texts"),
            truncate=binding.truncates(request, body.truncate),
        ),
    )
    scores = binding.record_result(request, result)
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

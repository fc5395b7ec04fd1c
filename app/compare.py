"""TEI's routes that compare one text with many, by the cosine of their vectors."""

import numpy as np
from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from heedful.app import answers, inference, schemas
from heedful.app.requests import InferenceRoute

router = APIRouter(route_class=InferenceRoute, responses=answers.ERRORS, tags=["models"])


class Sentences(schemas.Closed):
    source_sentence: str
    sentences: list[str]


class Parameters(schemas.Truncation):
    prompt_name: schemas.PromptName = None


class SimilarityRequest(schemas.Request):
    inputs: Sentences
    parameters: Parameters | None = None


class RerankRequest(schemas.Request, schemas.Truncation):
    query: str
    texts: list[str]
    return_text: bool = False
    raw_scores: bool = Field(
        False, description="TEI's. A cosine is its own raw score: either value is the same."
    )


class Rank(BaseModel):
    index: int = Field(description="Place of the text in the request.")
    text: str = Field("", description="Only where return_text is set.")
    score: float


@router.post("/similarity", responses=answers.documented(list[float]))
async def similarity(body: SimilarityRequest, request: Request) -> Response:
    """The cosine of the source sentence with each of the sentences."""
    service, card = inference.model(request, "embed", body.model)
    source, sentences = body.inputs.source_sentence, body.inputs.sentences
    truncate = body.parameters is not None and bool(body.parameters.truncate)
    with inference.called(_names("inputs.source_sentence", "inputs.sentences", len(sentences))):
        result = await service.similarity(source, sentences, model=card.name, truncate=truncate)
    inference.done(request, result)
    return answers.json(result.value)


@router.post("/rerank", responses=answers.documented(list[Rank]))
async def rerank(body: RerankRequest, request: Request) -> Response:
    """The texts by their cosine with the query, the best first."""
    service, card = inference.model(request, "embed", body.model)
    with inference.called(_names("query", "texts", len(body.texts))):
        result = await service.similarity(
            body.query, body.texts, model=card.name, truncate=bool(body.truncate)
        )
    inference.done(request, result)
    scores = result.value
    return answers.json(
        [
            {
                "index": index,
                **({"text": body.texts[index]} if body.return_text else {}),
                "score": scores[index],
            }
            for index in np.argsort(-scores, kind="stable")
        ]
    )


def _names(source: str, others: str, count: int) -> dict[str, str]:
    """The service's names of the fields -> the client's."""
    rows = {f"others[{i}]": f"{others}[{i}]" for i in range(count)}
    return {"source": source, "others": others, **rows}

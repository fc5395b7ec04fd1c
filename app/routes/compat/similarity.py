"""A text compared with many by their cosines: TEI's two routes, and the rerank of Cohere and Jina."""

from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter
from pydantic import BaseModel, Field, Tag
from starlette.responses import Response

from heedful.app.http import responses
from heedful.app.http.inference_route import InferenceRequest, InferenceRoute
from heedful.app.schemas import request_bodies
from heedful.app.schemas.base import ANY_OF, InputList, OpenModel, Text, by_shape, by_tag, refused
from heedful.runtime.answers import Result
from heedful.runtime.inputs import Inputs
from heedful.text.arrays import Doubles, Ints

router = APIRouter(route_class=InferenceRoute, tags=["models"])
rerank_router = APIRouter(route_class=InferenceRoute, tags=["rerank"])


class Sentences(OpenModel):
    source_sentence: Text
    sentences: InputList[Text]


class Parameters(request_bodies.Truncation, OpenModel):
    prompt_name: request_bodies.PromptName = None


class SimilarityRequest(request_bodies.Request, OpenModel):
    inputs: Sentences
    parameters: Parameters | None = None


class RerankRequest(request_bodies.Request, request_bodies.Truncation, OpenModel):
    query: Text
    texts: InputList[Text]
    return_text: bool = False
    raw_scores: bool = Field(False, description="TEI's. No effect: a cosine is its own raw score.")


class Rank(BaseModel):
    index: int = Field(description="Position of the text in the request.")
    text: str = Field(default_factory=str, description="Only with return_text.")
    score: float


@router.post("/similarity", response_model=list[float])
async def similarity(body: SimilarityRequest, request: InferenceRequest) -> Response:
    """The cosine of the source sentence with each sentence."""
    model = request.bind("embed", body.model)
    sentences = Inputs.from_texts(body.inputs.sentences, "inputs.sentences")
    sentences.remedy = "set parameters.truncate to true"
    result = await request.run(
        model.similarity(
            Inputs([body.inputs.source_sentence], ["inputs.source_sentence"]),
            sentences,
            truncate=request.truncates(body.parameters.truncate if body.parameters else None),
        )
    )
    return responses.json(result.value)


COHERE_TOKENS = 4096
"""Cohere's default of max_tokens_per_doc, which some of its clients always send."""


class Document(OpenModel):
    """Its other fields are given back with it."""

    text: Text

    def ignored(self, path: str = "") -> list[str]:  # noqa: ARG002
        return []


class DocumentsRequest(OpenModel):
    model: str | None = Field(None, description="A name from /models, or an alias.")
    query: Text
    documents: InputList[
        Annotated[
            Annotated[Text, Tag("<text>")] | Annotated[Document, Tag("<object>")],
            by_shape("must be a string or an object with text"),
        ]
    ]
    rank_fields: Annotated[
        list[str] | None,
        refused('documents are ranked only by their text; send ["text"] or leave it out', ["text"]),
    ] = Field(None, description='Cohere\'s. Refused unless it is ["text"]: nothing else is ranked.')
    max_tokens_per_doc: Annotated[
        int | None,
        refused("documents are not cut, long ones are averaged; leave it out", COHERE_TOKENS),
    ] = Field(
        None,
        description=f"Cohere's. Refused unless it is its default, {COHERE_TOKENS}: long documents are averaged.",
    )
    top_n: int | None = Field(None, ge=1, description="Return this many of the best documents.")
    return_documents: bool | None = Field(
        None, description="Jina's default is true on /v1; on /v2 it is false, as Cohere's."
    )


class Ranked(BaseModel):
    index: int = Field(description="Position of the document in the request.")
    relevance_score: float = Field(description="The cosine, from -1 to 1.")
    document: dict[str, Any] = Field(
        default_factory=dict,
        description='If documents are returned: the object that was sent, or {"text"}.',
    )


class Reranked(BaseModel):
    id: str
    model: str
    results: list[Ranked] = Field(description="Best first.")
    usage: dict[str, int] = Field(description="Jina's: total_tokens.")
    meta: dict[str, Any] = Field(description="Cohere's: api_version and billed_units.")


def _shape(value: object) -> str | None:
    if not isinstance(value, dict):
        return None
    # Clients send null for fields that they do not set.
    if "documents" in value and value.get("texts") is None:
        return "<documents>"
    return "<texts>"


AnyRerankRequest = Annotated[
    Annotated[RerankRequest, Tag("<texts>")] | Annotated[DocumentsRequest, Tag("<documents>")],
    by_tag(_shape, "must be an object with query and texts, or with query and documents"),
    ANY_OF,
]


@router.post("/rerank", response_model=list[Rank] | Reranked)
async def rerank(body: AnyRerankRequest, request: InferenceRequest) -> Response:
    """The texts ranked by their cosine with the query, best first; with `documents` as /v1/rerank."""
    if isinstance(body, DocumentsRequest):
        return await _rerank_documents(body, request, version="1")
    truncate = request.truncates(body.truncate)
    result, order = await _ranked(request, body, body.texts, "texts", truncate=truncate)
    return responses.json(
        [
            {
                "index": index,
                **({"text": body.texts[index]} if body.return_text else {}),
                "score": result.value[index],
            }
            for index in order
        ]
    )


@rerank_router.post("/v1/rerank", response_model=Reranked)
async def rerank_v1(body: DocumentsRequest, request: InferenceRequest) -> Response:
    """Cohere's first version and Jina's: the documents ranked by their cosine with the query."""
    return await _rerank_documents(body, request, version="1")


@rerank_router.post("/v2/rerank", response_model=Reranked)
async def rerank_v2(body: DocumentsRequest, request: InferenceRequest) -> Response:
    """Cohere's second version: the documents ranked by their cosine with the query."""
    return await _rerank_documents(body, request, version="2")


async def _rerank_documents(
    body: DocumentsRequest, request: InferenceRequest, version: str
) -> Response:
    texts = [item if isinstance(item, str) else item.text for item in body.documents]
    truncate = request.truncates(None)
    result, order = await _ranked(
        request, body, texts, "documents", truncate=truncate, mean=not truncate
    )
    returned = version == "1" if body.return_documents is None else body.return_documents
    results = [
        {
            "index": index,
            "relevance_score": result.value[index],
            **({"document": _repeated(body.documents[index], index)} if returned else {}),
        }
        for index in order[: body.top_n].tolist()
    ]
    return responses.json(
        {
            "id": request.record.id,
            "model": result.card.name,
            "results": results,
            "usage": {"total_tokens": result.tokens},
            "meta": {"api_version": {"version": version}, "billed_units": {"search_units": 1}},
        }
    )


def _repeated(document: str | Document, index: int) -> dict[str, Any]:
    if isinstance(document, str):
        return {"text": document}
    return responses.repeatable(document.model_dump(), f"documents[{index}]")


async def _ranked(
    request: InferenceRequest,
    body: RerankRequest | DocumentsRequest,
    texts: list[str],
    path: str,
    *,
    truncate: bool,
    mean: bool = False,
) -> tuple[Result[Doubles], Ints]:
    """The cosines (N,) of the query with the texts, which the field `path` holds; and their indices, best first."""
    model = request.bind("embed", body.model)
    query, candidates = Inputs([body.query], ["query"]), Inputs.from_texts(texts, path)
    result = await request.run(model.similarity(query, candidates, truncate=truncate, mean=mean))
    return result, np.argsort(-result.value, kind="stable")

"""The routes that work: a request's fields -> one call of the service -> the answer's bytes."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt
from fastapi import APIRouter, Request
from starlette.responses import Response

from heedful.app import answers, inference, schemas, trees
from heedful.app.requests import InferenceRoute
from heedful.runtime.service import Item, TokenizedText, normalise

router = APIRouter(route_class=InferenceRoute, responses=answers.ERRORS, tags=["models"])


@router.post("/embed", responses=answers.documented(list[list[float]]))
@router.post("/", responses=answers.documented(list[list[float]]))
async def embed(body: schemas.EmbedRequest, request: Request) -> Response:
    """One row of numbers for each input, in order."""
    service, card = inference.model(request, "embed", body.model)
    schemas.check_dimensions(body.dimensions, card.dimension)
    texts, naming = _texts(body.inputs)
    with naming:
        result = await service.embed(texts, model=card.name, truncate=bool(body.truncate))
    inference.done(request, result)
    if body.normalize:
        return answers.json(normalise(result.value, body.dimensions))
    return answers.json(np.ascontiguousarray(result.value[:, : body.dimensions]))


@router.post("/nli", responses=answers.documented(schemas.NLIAnswer | schemas.NLIAnswers))
async def nli(body: schemas.NLIRequest, request: Request) -> Response:
    """Whether the premise entails the hypothesis, contradicts it, or does neither."""
    service, card = inference.model(request, "nli", body.model)
    many = isinstance(body, schemas.ManyPairs)
    pairs: list[schemas.Pair | schemas.OnePair] = (
        [*body.pairs] if isinstance(body, schemas.ManyPairs) else [body]
    )
    alone = {f"pairs[0].{side}": side for side in ("premise", "hypothesis")}
    with inference.called({} if many else alone):
        texts = [
            (
                trees.read(pair.premise, f"pairs[{i}].premise"),
                trees.read(pair.hypothesis, f"pairs[{i}].hypothesis"),
            )
            for i, pair in enumerate(pairs)
        ]
        result = await service.nli(texts, model=card.name, truncate=bool(body.truncate))
    inference.done(request, result)
    found = [_judgement(row, card.labels) for row in result.value]
    return answers.json({"results": found} if many else found[0])


@router.post("/relatedness", responses=answers.documented(schemas.RelatednessAnswer))
async def relatedness(body: schemas.RelatednessRequest, request: Request) -> Response:
    """How related the two texts of each pair are, from 1 (not at all) to 5 (the same)."""
    service, card = inference.model(request, "relatedness", body.model)
    pairs = [(pair.a, pair.b) for pair in body.pairs]
    result = await service.relatedness(pairs, model=card.name, truncate=bool(body.truncate))
    inference.done(request, result)
    return answers.json({"scores": result.value})


@router.post(
    "/classify", responses=answers.documented(list[schemas.Label] | list[list[schemas.Label]])
)
async def classify(body: schemas.ClassifyRequest, request: Request) -> Response:
    """The labels of each input with their probabilities, the best first."""
    service, card = inference.model(request, "classify", body.model)
    texts, naming = _texts(body.inputs)
    with naming:
        result = await service.classify(texts, model=card.name, truncate=bool(body.truncate))
    inference.done(request, result)
    ranked = [answers.ranked(row, card.labels, body.top_k) for row in result.value]
    return answers.json(ranked if isinstance(body.inputs, list) else ranked[0])


@router.post("/tokenize", responses=answers.documented(list[list[schemas.Token]]))
async def tokenize(body: schemas.TokenizeRequest, request: Request) -> Response:
    """The tokens of each input, with the tree that the models read."""
    service, card = inference.model(request, "embed", body.model)
    texts, naming = _texts(body.inputs)
    with naming:
        result = await service.tokenize(texts, model=card.name, truncate=bool(body.truncate))
    inference.done(request, result)
    return answers.json([tokens(text) for text in result.value])


def _texts(
    inputs: trees.Given | Sequence[trees.Given],
) -> tuple[list[Item], AbstractContextManager[None]]:
    """The inputs as a list, and the context in which errors name them as the client sent them."""
    if isinstance(inputs, trees.Given):
        return [trees.read(inputs, "inputs")], inference.called({"inputs[0]": "inputs"})
    return [trees.read(item, f"inputs[{i}]") for i, item in enumerate(inputs)], nullcontext()


def _judgement(row: npt.NDArray[Any], labels: tuple[str, ...]) -> dict[str, Any]:
    """The best of an NLI model's three labels, and the probability of each."""
    scores = dict(zip(labels, row, strict=True))
    return {
        "label": labels[int(row.argmax())],
        "scores": {label: scores[label] for label in schemas.NLI_LABELS},
    }


def tokens(text: TokenizedText) -> list[dict[str, Any]]:
    """As `schemas.Token` says."""
    parse = text.parse
    columns = zip(
        text.ids,
        parse.tokens,
        parse.starts,
        parse.stops,
        parse.heads,
        parse.deps,
        text.known,
        strict=True,
    )
    return [dict(zip(schemas.Token.model_fields, row, strict=True)) for row in columns]

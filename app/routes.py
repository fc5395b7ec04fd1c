"""The routes that work: a request's fields -> one call of the service -> the answer's bytes."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt
from fastapi import APIRouter, Request
from starlette.responses import Response

from app import answers, record, schemas
from app.requests import WorkRoute
from app.status import ready_service
from runtime.card import Card
from runtime.catalogue import Task
from runtime.errors import BadInput
from runtime.service import Result, Service, TokenizedText, normalise

router = APIRouter(route_class=WorkRoute, responses=answers.ERRORS, tags=["models"])


@router.post("/embed", responses=answers.documented(list[list[float]]))
@router.post("/", responses=answers.documented(list[list[float]]))
async def embed(body: schemas.EmbedRequest, request: Request) -> Response:
    """One row of numbers for each input, in order."""
    service, card = _model(request, "embed", body.model)
    body.check(card.dimension)
    texts, naming = _texts(body.inputs)
    with naming:
        result = await service.embed(texts, model=card.name, truncate=bool(body.truncate))
    _done(request, result)
    if body.normalize:
        return answers.json(normalise(result.value, body.dimensions))
    return answers.json(np.ascontiguousarray(result.value[:, : body.dimensions]))


@router.post("/nli", responses=answers.documented(schemas.NLIAnswer | schemas.NLIAnswers))
async def nli(body: schemas.NLIRequest, request: Request) -> Response:
    """Whether the premise entails the hypothesis, contradicts it, or does neither."""
    service, card = _model(request, "nli", body.model)
    many = isinstance(body, schemas.ManyPairs)
    pairs = body.pairs if isinstance(body, schemas.ManyPairs) else [body]
    with nullcontext() if many else _named("pairs[0].", ""):
        texts = [(pair.premise, pair.hypothesis) for pair in pairs]
        result = await service.nli(texts, model=card.name, truncate=bool(body.truncate))
    _done(request, result)
    found = [_judgement(row, card.labels) for row in result.value]
    return answers.json({"results": found} if many else found[0])


@router.post("/relatedness", responses=answers.documented(schemas.RelatednessAnswer))
async def relatedness(body: schemas.RelatednessRequest, request: Request) -> Response:
    """How related the two texts of each pair are, from 1 (not at all) to 5 (the same)."""
    service, card = _model(request, "relatedness", body.model)
    pairs = [(pair.a, pair.b) for pair in body.pairs]
    result = await service.relatedness(pairs, model=card.name, truncate=bool(body.truncate))
    _done(request, result)
    return answers.json({"scores": result.value})


@router.post(
    "/classify", responses=answers.documented(list[schemas.Label] | list[list[schemas.Label]])
)
async def classify(body: schemas.ClassifyRequest, request: Request) -> Response:
    """The labels of each input with their probabilities, the best first."""
    service, card = _model(request, "classify", body.model)
    texts, naming = _texts(body.inputs)
    with naming:
        result = await service.classify(texts, model=card.name, truncate=bool(body.truncate))
    _done(request, result)
    ranked = [_ranked(row, card.labels, body.top_k) for row in result.value]
    return answers.json(ranked[0] if isinstance(body.inputs, str) else ranked)


@router.post("/tokenize", responses=answers.documented(list[list[schemas.Token]]))
async def tokenize(body: schemas.TokenizeRequest, request: Request) -> Response:
    """The tokens of each input, with the tree that the models read."""
    service, card = _model(request, "embed", body.model)
    body.check()
    texts, naming = _texts(body.inputs)
    with naming:
        result = await service.tokenize(texts, model=card.name, truncate=bool(body.truncate))
    _done(request, result)
    return answers.json([_tokens(text) for text in result.value])


def _model(request: Request, task: Task, name: str | None) -> tuple[Service, Card]:
    """The service, and the card of the model that will answer.

    Raises Unavailable while no model is loaded, UnknownModel, WrongTask.
    """
    service: Service = request.app.state.service
    if not service.cards:
        ready_service(request)
    card = service.card(task, name)
    record.of(request.scope).model = card.name
    return service, card


def _done(request: Request, result: Result[Any]) -> None:
    record.of(request.scope).answer(result)


def _texts(inputs: str | list[str]) -> tuple[Sequence[str], Any]:
    """The inputs as a list, and the context in which errors name them as the client sent them."""
    if isinstance(inputs, str):
        return [inputs], _named("inputs[0]", "inputs")
    return inputs, nullcontext()


@contextmanager
def _named(listed: str, single: str) -> Iterator[None]:
    """The service knows lists alone: what it calls `listed`, this client called `single`."""
    try:
        yield
    except BadInput as error:
        if error.param is None or not error.param.startswith(listed):
            raise
        param = single + error.param.removeprefix(listed)
        message = str(error).replace(error.param, param)
        raise type(error)(message, param=param, code=error.code) from None


def _judgement(row: npt.NDArray[Any], labels: tuple[str, ...]) -> dict[str, Any]:
    """The best of an NLI model's three labels, and the probability of each."""
    scores = dict(zip(labels, row, strict=True))
    return {
        "label": labels[int(row.argmax())],
        "scores": {label: scores[label] for label in schemas.NLI_LABELS},
    }


def _ranked(
    row: npt.NDArray[Any], labels: tuple[str, ...], top_k: int | None
) -> list[dict[str, Any]]:
    best = np.argsort(-row, kind="stable")[:top_k]
    return [{"label": labels[i], "score": row[i]} for i in best]


def _tokens(text: TokenizedText) -> list[dict[str, Any]]:
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

"""The inference routes: a request's fields -> one call of the model -> the answer's bytes."""

from typing import Any

import numpy.typing as npt
from fastapi import APIRouter, Request
from starlette.responses import Response

from heedful.app import answer_schemas, answers, array_answers, inference, schemas, trees
from heedful.app.fast_path import InferenceRoute
from heedful.app.hub_schemas import finished
from heedful.runtime.explain_answer import tokens
from heedful.runtime.inputs import Inputs
from heedful.text.kinds import NLI_LABELS

router = APIRouter(route_class=InferenceRoute, responses=answers.ERRORS, tags=["models"])


@router.post(
    "/embed",
    responses=answers.in_bytes(answers.documented(list[list[float]]), array_answers.HEADERS),
)
async def embed(body: schemas.EmbedRequest, request: Request) -> Response:
    """One row of numbers for each input, in order; as bytes for `Accept: application/octet-stream`."""
    dtype = array_answers.wanted(request.scope)
    model = inference.bind(request, "embed", body.model)
    result = await model.embed(
        trees.read_inputs(body.inputs),
        truncate=inference.truncates(request, body.truncate),
        mean=body.long == "mean",
        normalize=body.normalize,
        dimensions=body.dimensions,
    )
    vectors = inference.record_result(request, result)
    if dtype:
        return array_answers.ArrayBytes(vectors, dtype)
    return answers.JSONBytes(await answers.rows(vectors))


@router.post(
    "/nli", responses=answers.documented(answer_schemas.NLIAnswer | answer_schemas.NLIAnswers)
)
async def nli(body: schemas.NLIRequest, request: Request) -> Response:
    """Whether the premise entails the hypothesis, contradicts it, or does neither."""
    model = inference.bind(request, "nli", body.model)
    many = isinstance(body, schemas.ManyPairs)
    pairs = body.pairs if isinstance(body, schemas.ManyPairs) else [body]
    inputs = trees.read(
        [item for pair in pairs for item in (pair.premise, pair.hypothesis)],
        [
            f"pairs[{i}].{side}" if many else side
            for i in range(len(pairs))
            for side in ("premise", "hypothesis")
        ],
        "pairs",
        texts_per_row=2,
    )
    truncate = inference.truncates(request, body.truncate)
    result = await model.classify(inputs, truncate=truncate, trust=body.trust)
    scores = inference.record_result(request, result)
    found = [_judgement(row, model.card.labels) for row in scores]
    for one, trust in zip(found, result.trust, strict=False):  # of none if not asked for
        one["trust"] = trust
    return answers.json({"results": found} if many else found[0])


@router.post("/relatedness", responses=answers.documented(answer_schemas.RelatednessAnswer))
async def relatedness(body: schemas.RelatednessRequest, request: Request) -> Response:
    """How related the two texts of each pair are, from 1 (unrelated) to 5 (equivalent)."""
    model = inference.bind(request, "relatedness", body.model)
    pairs = Inputs.from_pairs([(pair.a, pair.b) for pair in body.pairs], ("a", "b"))
    truncate = inference.truncates(request, body.truncate)
    result = await model.relatedness(pairs, truncate=truncate, trust=body.trust)
    found: dict[str, Any] = {"scores": inference.record_result(request, result)}
    return answers.json({**found, "trust": result.trust} if body.trust else found)


@router.post(
    "/classify",
    responses=answers.documented(
        list[answer_schemas.Label]
        | list[list[answer_schemas.Label]]
        | answer_schemas.TrustedLabels
        | list[answer_schemas.TrustedLabels]
    ),
)
async def classify(body: schemas.ClassifyRequest, request: Request) -> Response:
    """The labels of each input with their probabilities, best first.

    A model that may abstain answers the label null first where no label is probable enough.
    """
    model = inference.bind(request, "classify", body.model)
    inputs = trees.read_inputs(body.inputs)
    raw = body.function != "softmax"
    truncate = inference.truncates(request, body.truncate)
    result = await model.classify(inputs, truncate=truncate, raw=raw, trust=body.trust)
    scores = finished(inference.record_result(request, result), body.function)
    top_k = body.top_k or (body.parameters.top_k if body.parameters else None)
    ranked: list[Any] = [answers.ranked(row, model.card, top_k, raw=raw) for row in scores]
    if body.trust:
        pairs = zip(ranked, result.trust, strict=True)
        ranked = [{"labels": labels, "trust": trust} for labels, trust in pairs]
    listed = isinstance(body.inputs, list) or body.parameters is not None
    return answers.json(ranked if listed else ranked[0])


@router.post("/tokenize", responses=answers.documented(list[list[answer_schemas.Token]]))
async def tokenize(body: schemas.TokenizeRequest, request: Request) -> Response:
    """The tokens of each input, with the tree that the models read."""
    model = inference.bind(request, "embed", body.model)
    inputs = trees.read_inputs(body.inputs)
    result = await model.tokenize(inputs, truncate=inference.truncates(request, body.truncate))
    return answers.json([tokens(text) for text in inference.record_result(request, result)])


def _judgement(row: npt.NDArray[Any], labels: tuple[str, ...]) -> dict[str, Any]:
    """The most probable of an NLI model's three labels, and the probability of each."""
    scores = dict(zip(labels, row, strict=True))
    return {
        "label": labels[int(row.argmax())],
        "scores": {label: scores[label] for label in NLI_LABELS},
    }

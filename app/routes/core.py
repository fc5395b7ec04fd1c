"""The inference routes: a request's fields -> one call of the model -> the answer's bytes."""

from typing import Any

import numpy.typing as npt
from fastapi import APIRouter, Request
from starlette.responses import Response

from heedful.app.http import array_responses, binding, responses
from heedful.app.http.fast_path import InferenceRoute
from heedful.app.schemas import given_trees, request_bodies, response_bodies
from heedful.app.schemas.huggingface_bodies import finished
from heedful.runtime.explain.serialize import tokens
from heedful.runtime.inputs import Inputs
from heedful.text.kinds import NLI_LABELS

router = APIRouter(route_class=InferenceRoute, responses=responses.ERRORS, tags=["models"])


@router.post(
    "/embed",
    responses=responses.in_bytes(responses.documented(list[list[float]]), array_responses.HEADERS),
)
async def embed(body: request_bodies.EmbedRequest, request: Request) -> Response:
    """One row of numbers for each input, in order; as bytes for `Accept: application/octet-stream`."""
    dtype = array_responses.wanted(request.scope)
    model = binding.bind(request, "embed", body.model)
    result = await binding.answer(
        request,
        model.embed(
            given_trees.read_inputs(body.inputs),
            truncate=binding.truncates(request, body.truncate),
            mean=body.long == "mean",
            normalize=body.normalize,
            dimensions=body.dimensions,
        ),
    )
    vectors = binding.record_result(request, result)
    if dtype:
        return array_responses.ArrayBytes(vectors, dtype)
    return responses.JSONBytes(await responses.rows(vectors))


@router.post(
    "/nli", responses=responses.documented(response_bodies.NLIAnswer | response_bodies.NLIAnswers)
)
async def nli(body: request_bodies.NLIRequest, request: Request) -> Response:
    """Whether the premise entails the hypothesis, contradicts it, or does neither."""
    model = binding.bind(request, "nli", body.model)
    many = isinstance(body, request_bodies.ManyPairs)
    pairs = body.pairs if isinstance(body, request_bodies.ManyPairs) else [body]
    inputs = given_trees.read(
        [item for pair in pairs for item in (pair.premise, pair.hypothesis)],
        [
            f"pairs[{i}].{side}" if many else side
            for i in range(len(pairs))
            for side in ("premise", "hypothesis")
        ],
        "pairs",
        texts_per_row=2,
    )
    truncate = binding.truncates(request, body.truncate)
    result = await binding.answer(
        request, model.classify(inputs, truncate=truncate, trust=body.trust)
    )
    scores = binding.record_result(request, result)
    found = [_judgement(row, model.card.labels) for row in scores]
    for one, trust in zip(found, result.trust, strict=False):  # of none if not asked for
        one["trust"] = trust
    return responses.json({"results": found} if many else found[0])


@router.post("/relatedness", responses=responses.documented(response_bodies.RelatednessAnswer))
async def relatedness(body: request_bodies.RelatednessRequest, request: Request) -> Response:
    """How related the two texts of each pair are, from 1 (unrelated) to 5 (equivalent)."""
    model = binding.bind(request, "relatedness", body.model)
    pairs = Inputs.from_pairs([(pair.a, pair.b) for pair in body.pairs], ("a", "b"))
    truncate = binding.truncates(request, body.truncate)
    result = await binding.answer(
        request, model.relatedness(pairs, truncate=truncate, trust=body.trust)
    )
    found: dict[str, Any] = {"scores": binding.record_result(request, result)}
    return responses.json({**found, "trust": result.trust} if body.trust else found)


@router.post(
    "/classify",
    responses=responses.documented(
        list[response_bodies.Label]
        | list[list[response_bodies.Label]]
        | response_bodies.TrustedLabels
        | list[response_bodies.TrustedLabels]
    ),
)
async def classify(body: request_bodies.ClassifyRequest, request: Request) -> Response:
    """The labels of each input with their probabilities, best first.

    A model that may abstain answers the label null first where no label is probable enough.
    """
    model = binding.bind(request, "classify", body.model)
    inputs = given_trees.read_inputs(body.inputs)
    raw = body.function != "softmax"
    truncate = binding.truncates(request, body.truncate)
    result = await binding.answer(
        request, model.classify(inputs, truncate=truncate, raw=raw, trust=body.trust)
    )
    scores = finished(binding.record_result(request, result), body.function)
    top_k = body.top_k or (body.parameters.top_k if body.parameters else None)
    ranked: list[Any] = [responses.ranked(row, model.card, top_k, raw=raw) for row in scores]
    if body.trust:
        pairs = zip(ranked, result.trust, strict=True)
        ranked = [{"labels": labels, "trust": trust} for labels, trust in pairs]
    listed = isinstance(body.inputs, list) or body.parameters is not None
    return responses.json(ranked if listed else ranked[0])


@router.post("/tokenize", responses=responses.documented(list[list[response_bodies.Token]]))
async def tokenize(body: request_bodies.TokenizeRequest, request: Request) -> Response:
    """The tokens of each input, with the tree that the models read."""
    model = binding.bind(request, "embed", body.model)
    inputs = given_trees.read_inputs(body.inputs)
    result = await binding.answer(
        request, model.tokenize(inputs, truncate=binding.truncates(request, body.truncate))
    )
    return responses.json([tokens(text) for text in binding.record_result(request, result)])


def _judgement(row: npt.NDArray[Any], labels: tuple[str, ...]) -> dict[str, Any]:
    """The most probable of an NLI model's three labels, and the probability of each."""
    scores = dict(zip(labels, row, strict=True))
    return {
        "label": labels[int(row.argmax())],
        "scores": {label: scores[label] for label in NLI_LABELS},
    }

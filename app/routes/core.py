"""The inference routes: a request's fields -> a call of the model -> the answer's bytes."""

from typing import Any

import numpy as np
from fastapi import APIRouter
from starlette.responses import Response

from heedful.app.http import responses
from heedful.app.http.inference_route import InferenceRequest, InferenceRoute
from heedful.app.schemas import (
    explain_bodies,
    openapi_responses,
    request_bodies,
    response_bodies,
    tree_bodies,
)
from heedful.app.schemas.huggingface_bodies import ZeroShotParameters, apply_function
from heedful.runtime.answers import as_precision
from heedful.runtime.engine.work import Steps
from heedful.runtime.errors import BadInput
from heedful.runtime.explain.run import ExplainOptions
from heedful.runtime.inputs import Inputs
from heedful.runtime.model_registry import Task
from heedful.runtime.zero_shot import Labels
from heedful.text.arrays import Doubles
from heedful.text.kinds import NLI_LABELS

HUB = "parameters."
"""Where the hub's clients have their labels."""
router = APIRouter(route_class=InferenceRoute, tags=["models"])


@router.post("/embed", response_model=list[list[float]], responses=openapi_responses.IN_BYTES)
async def embed(body: request_bodies.EmbedRequest, request: InferenceRequest) -> Response:
    """One row of numbers for each input, in order; as bytes for `Accept: application/octet-stream`."""
    dtype, precision = responses.wanted_dtype(request.scope), body.precision
    engine_request = request.bind("embed", body.model).embed(
        tree_bodies.read_inputs(body.inputs),
        truncate=request.truncates(body.truncate),
        mean=body.long == "mean",
        normalize=body.normalize,
        dimensions=body.dimensions,
    )
    if dtype is None and engine_request.rows > responses.ROWS_AT_ONCE:
        result = await request.run(
            engine_request, lambda rows: responses.rows(as_precision(rows, precision))
        )
        return responses.written_json(result.value)
    vectors = as_precision((await request.run(engine_request)).value, precision)
    return responses.array_bytes(vectors, dtype) if dtype else responses.json(vectors)


@router.post("/nli", response_model=response_bodies.NLIAnswer | response_bodies.NLIAnswers)
async def nli(body: request_bodies.NLIRequest, request: InferenceRequest) -> Response:
    """Whether the premise entails the hypothesis, contradicts it, or does neither."""
    model = request.bind("nli", body.model)
    many = isinstance(body, request_bodies.ManyPairs)
    pairs = body.pairs if isinstance(body, request_bodies.ManyPairs) else [body]
    items = [item for pair in pairs for item in (pair.premise, pair.hypothesis)]
    sides = ["premise", "hypothesis"]
    paths = [f"pairs[{i}].{side}" for i in range(len(pairs)) for side in sides] if many else sides
    inputs = tree_bodies.read(items, paths, "pairs", texts_per_row=2)
    truncate = request.truncates(body.truncate)
    result = await request.run(model.classify(inputs, truncate=truncate, trust=body.trust))
    labels = result.card.labels
    judgements: list[dict[str, Any]] = []
    for i, row in enumerate(result.value):
        scores = dict(zip(labels, row, strict=True))
        in_order = {label: scores[label] for label in NLI_LABELS}
        judgements.append({"label": labels[int(row.argmax())], "scores": in_order})
        if body.trust:
            judgements[i]["trust"] = result.trust[i]
    return responses.json({"results": judgements} if many else judgements[0])


@router.post("/relatedness", response_model=response_bodies.RelatednessAnswer)
async def relatedness(
    body: request_bodies.RelatednessRequest, request: InferenceRequest
) -> Response:
    """How related the two texts of each pair are, from 1 (unrelated) to 5 (equivalent)."""
    model = request.bind("relatedness", body.model)
    pairs = Inputs.from_pairs([(pair.a, pair.b) for pair in body.pairs], ("a", "b"))
    truncate = request.truncates(body.truncate)
    result = await request.run(model.relatedness(pairs, truncate=truncate, trust=body.trust))
    fields: dict[str, Any] = {"scores": result.value}
    return responses.json({**fields, "trust": result.trust} if body.trust else fields)


@router.post("/classify", response_model=response_bodies.Classified)
async def classify(body: request_bodies.ClassifyRequest, request: InferenceRequest) -> Response:
    """The labels of each input with their probabilities, best first.

    A model that may abstain answers the label null first where no label is probable enough. With `labels`, or the
    hub's `candidate_labels`, how well each of these fits.
    """
    if labels := _client_labels(body):
        return await _classify_zero_shot(body, labels, request)
    model = request.bind("classify", body.model)
    inputs = tree_bodies.read_inputs(body.inputs)
    raw = body.function != "softmax"
    truncate = request.truncates(body.truncate)
    result = await request.run(model.classify(inputs, truncate=truncate, raw=raw, trust=body.trust))
    scores = apply_function(result.value, body.function)
    top_k = body.top_k or (body.parameters.top_k if body.parameters else None)
    ranked: list[Any] = [responses.ranked(row, result.card, top_k, raw=raw) for row in scores]
    if body.trust:
        pairs = zip(ranked, result.trust, strict=True)
        ranked = [{"labels": labels, "trust": trust} for labels, trust in pairs]
    is_list = isinstance(body.inputs, list) or body.parameters is not None
    return responses.json(ranked if is_list else ranked[0])


def _client_labels(body: request_bodies.ClassifyRequest) -> Labels | None:
    """The labels in a request's fields or in the hub's; None without any.

    Raises BadInput for labels in both, for options without labels, and for another function than softmax.
    """
    hub = body.parameters or ZeroShotParameters()
    labels = None
    for prefix, path, names, fields in (
        ("", "labels", body.labels, body),
        (HUB, f"{HUB}candidate_labels", hub.candidate_labels, hub),
    ):
        template, multi_label = fields.hypothesis_template, fields.multi_label
        if names is not None:
            if labels:
                raise _unsupported("labels", f"are in {path} too; leave one of them out")
            labels = Labels(
                names, template, bool(multi_label), path, f"{prefix}hypothesis_template"
            )
        elif template is not None:
            raise _unsupported(f"{prefix}hypothesis_template", f"belongs to {path}; send them too")
        elif multi_label is not None:
            raise _unsupported(f"{prefix}multi_label", f"belongs to {path}; send them too")
    if labels and body.function != "softmax":
        raise _unsupported(
            f"{HUB}function_to_apply", "applies to a model's labels; send multi_label"
        )
    return labels


async def _classify_zero_shot(
    body: request_bodies.ClassifyRequest, labels: Labels, request: InferenceRequest
) -> Response:
    """Each input's labels, best first, and the probability that none fits; for the hub's clients only the labels."""
    first = request.bind("zero-shot", body.model)
    scorer = request.service_state.service.zero_shot(first, named=body.model is not None)
    inputs = tree_bodies.read_inputs(body.inputs)
    truncate = request.truncates(body.truncate)
    top_k = body.top_k or (body.parameters.top_k if body.parameters else None)

    def write(scores: Doubles) -> Steps[bytes]:
        answers: list[Any] = []
        for i, row in enumerate(scores):
            if i % responses.ROWS_AT_ONCE == responses.ROWS_AT_ONCE - 1:
                yield None
            best = np.argsort(-row[:-1], kind="stable")[:top_k]
            ranked = [{"label": labels.names[j], "score": row[j]} for j in best]
            if labels.path.startswith(HUB) and not body.trust:
                answers.append(ranked)
            else:
                answers.append({"labels": ranked, "none": row[-1]})
            if body.trust and request.record.result:
                answers[i]["trust"] = request.record.result.trust[i]
        written = yield from responses.rows(answers)
        return written if isinstance(body.inputs, list) else written[1:-1]

    result = await request.run(
        scorer.classify(inputs, labels, truncate=truncate, trust=body.trust), write
    )
    return responses.written_json(result.value)


def _unsupported(param: str, reason: str) -> BadInput:
    return BadInput(f"{param}: {reason}", param=param, code="unsupported")


@router.post("/tokenize", response_model=list[list[response_bodies.Token]])
async def tokenize(body: request_bodies.TokenizeRequest, request: InferenceRequest) -> Response:
    """The tokens of each input, with the tree that the models read."""
    model = request.bind("embed", body.model)
    inputs = tree_bodies.read_inputs(body.inputs)
    result = await request.run(model.tokenize(inputs, truncate=request.truncates(body.truncate)))
    return responses.json([text.fields() for text in result.value])


@router.post("/explain", response_model=explain_bodies.ExplainAnswer)
async def explain(body: explain_bodies.ExplainRequest, request: InferenceRequest) -> Response:
    """What the model attends to in a text or a pair, with the given priors."""
    task: Task = "explain"
    sides: dict[str, tree_bodies.TextOrTree]
    if isinstance(body.inputs, request_bodies.Pair | explain_bodies.Related):
        task = "nli" if isinstance(body.inputs, request_bodies.Pair) else "relatedness"
        sides = {f"inputs.{side}": item for side, item in body.inputs}
    else:
        sides = {"inputs": body.inputs}
    model = request.bind(task, body.model)
    inputs = tree_bodies.read(list(sides.values()), list(sides), texts_per_row=len(sides))
    priors = body.priors.model_dump(exclude_none=True)
    options = ExplainOptions(
        alpha=priors.pop("alpha", None),
        priors=priors,
        ablation=body.ablation,
        evidence=body.evidence,
        trust=body.trust,
    )
    result = await request.run(
        model.explain(inputs, options, truncate=request.truncates(body.truncate))
    )
    fields = result.value.answer(result.card.name)
    return responses.json({**fields, "trust": result.trust[0]} if body.trust else fields)

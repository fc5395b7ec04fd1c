"""POST /explain: what the model attends to, as JSON."""

from typing import Any

import numpy as np
import numpy.typing as npt
from fastapi import APIRouter, Request
from starlette.responses import Response

from heedful.app import answers, explain_schemas, inference, schemas, trees
from heedful.app.explain_schemas import ExplainRequest
from heedful.app.requests import InferenceRoute
from heedful.app.routes import tokens
from heedful.runtime.answers import TokenizedText, chosen
from heedful.runtime.card import Card
from heedful.runtime.explain_graph import ExplainOutputs
from heedful.runtime.explain_run import ExplainOptions
from heedful.runtime.explain_service import DRAWS, ExplainResult
from heedful.runtime.model_registry import Task
from heedful.text.trees import to_conllu, to_displacy

router = APIRouter(route_class=InferenceRoute, responses=answers.ERRORS, tags=["models"])


@router.post("/explain", responses=answers.documented(explain_schemas.ExplainAnswer))
async def explain(body: ExplainRequest, request: Request) -> Response:
    """What the model attends to in a text or a pair, with the given priors."""
    task: Task = "explain"
    sides: dict[str, trees.Given]
    if isinstance(body.inputs, schemas.Pair | explain_schemas.Related):
        task = "nli" if isinstance(body.inputs, schemas.Pair) else "relatedness"
        sides = {f"inputs.{side}": item for side, item in body.inputs}
    else:
        sides = {"inputs": body.inputs}
    model = inference.bind(request, task, body.model)
    inputs = trees.read(list(sides.values()), list(sides), texts_per_row=len(sides))
    priors = body.priors.model_dump(exclude_none=True)
    options = ExplainOptions(
        alpha=priors.pop("alpha", None),
        priors=priors,
        ablation=body.ablation,
        faithfulness=body.faithfulness,
        k=body.k,
        evidence=body.evidence,
        gradients=body.gradients,
        curves=body.curves,
        trust=body.trust,
    )
    result = await model.explain(
        inputs, options, truncate=inference.truncates(request, body.truncate)
    )
    texts, found = inference.record_result(request, result)
    made = answer(model.card, texts, found, options.k)
    return answers.json({**made, "trust": result.trust[0]} if body.trust else made)


def answer(
    card: Card, texts: list[TokenizedText], explained: ExplainResult, k: int = 1
) -> dict[str, Any]:
    """The answer in the shape of `explain_schemas.ExplainAnswer`, with numpy arrays for lists."""
    priors: dict[str, Any] = dict(explained.priors)
    if explained.alpha is not None:
        priors["alpha"] = explained.alpha
    found: dict[str, Any] = {
        "model": card.name,
        "priors": priors,
        "sentences": [
            _sentence(text, one) for text, one in zip(texts, explained.sentences, strict=True)
        ],
    }
    if explained.scores is not None:
        found |= _answer_fields(explained.scores, card)
    if explained.similarity is not None:
        found["similarity"] = explained.similarity
    if explained.ablation is not None:
        found["ablation"] = [
            {
                "prior": one.prior,
                "cosine": one.cosine,
                **_change(explained.scores, one.scores, card),
            }
            for one in explained.ablation
        ]
    if explained.faithfulness is not None:
        found["faithfulness"] = {
            "k": k,
            "draws": DRAWS,
            "sentences": explained.faithfulness,  # orjson writes dataclasses
        }
    for name in ("evidence", "curves"):
        if (sentences := getattr(explained, name)) is not None:
            found[name] = {"of": explained.measured, "sentences": sentences}
    return found


def _sentence(text: TokenizedText, explanation: ExplainOutputs) -> dict[str, Any]:
    def listed(kind: str) -> list[dict[str, Any]]:
        named = getattr(explanation, kind).items()
        return [{"name": name, "weights": np.ascontiguousarray(array[0])} for name, array in named]

    return {
        "text": text.parse.text,
        "tokens": tokens(text),
        "tree": {"displacy": to_displacy(text.parse), "conllu": to_conllu(text.parse)},
        **{kind: listed(kind) for kind in ("maps", "gate", "pooling")},
    }


def _answer_fields(scores: npt.NDArray[np.float64], card: Card) -> dict[str, Any]:
    """The model's answer: a label and its scores, or how related a pair is."""
    if not card.labels:
        return {"relatedness": scores.item()}
    named = dict(zip(card.labels, scores.tolist(), strict=True))
    return {"prediction": {"label": _label(scores, card), "scores": named}}


def _label(scores: npt.NDArray[np.float64], card: Card) -> str | None:
    """The answer to scores (C,), None where the model abstains."""
    (label,) = chosen(card, scores[np.newaxis])
    return label


def _change(
    before: npt.NDArray[np.float64] | None, after: npt.NDArray[np.float64] | None, card: Card
) -> dict[str, Any]:
    if before is None or after is None:
        return {}
    names = card.labels or ("relatedness",)
    change = dict(zip(names, (after - before).tolist(), strict=True))
    flips = {"flips": _label(after, card) != _label(before, card)} if card.labels else {}
    return {**_answer_fields(after, card), "change": change, **flips}

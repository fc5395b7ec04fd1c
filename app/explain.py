"""POST /explain: what the model attends to, as JSON."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from heedful.app import answers, explain_schemas, inference, schemas, trees
from heedful.app.explain_schemas import ExplainRequest
from heedful.app.fast_path import InferenceRoute
from heedful.runtime.explain_answer import answer
from heedful.runtime.explain_run import ExplainOptions
from heedful.runtime.model_registry import Task

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

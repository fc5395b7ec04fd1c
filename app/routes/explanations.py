"""POST /explain: what the model attends to, as JSON."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from heedful.app.http import binding, responses
from heedful.app.http.fast_path import InferenceRoute
from heedful.app.schemas import explain_bodies, given_trees, request_bodies
from heedful.app.schemas.explain_bodies import ExplainRequest
from heedful.runtime.explain.run import ExplainOptions
from heedful.runtime.explain.serialize import explanation
from heedful.runtime.model_registry import Task

router = APIRouter(route_class=InferenceRoute, responses=responses.ERRORS, tags=["models"])


@router.post("/explain", responses=responses.documented(explain_bodies.ExplainAnswer))
async def explain(body: ExplainRequest, request: Request) -> Response:
    """What the model attends to in a text or a pair, with the given priors."""
    task: Task = "explain"
    sides: dict[str, given_trees.Given]
    if isinstance(body.inputs, request_bodies.Pair | explain_bodies.Related):
        task = "nli" if isinstance(body.inputs, request_bodies.Pair) else "relatedness"
        sides = {f"inputs.{side}": item for side, item in body.inputs}
    else:
        sides = {"inputs": body.inputs}
    model = binding.bind(request, task, body.model)
    inputs = given_trees.read(list(sides.values()), list(sides), texts_per_row=len(sides))
    priors = body.priors.model_dump(exclude_none=True)
    options = ExplainOptions(
        alpha=priors.pop("alpha", None),
        priors=priors,
        ablation=body.ablation,
        evidence=body.evidence,
        trust=body.trust,
    )
    result = await binding.answer(
        request, model.explain(inputs, options, truncate=binding.truncates(request, body.truncate))
    )
    texts, found = binding.record_result(request, result)
    made = explanation(model.card, texts, found)
    return responses.json({**made, "trust": result.trust[0]} if body.trust else made)

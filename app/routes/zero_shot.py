"""/classify with the client's labels: how well each fits a text, and whether none does."""

from typing import Any

import numpy as np
from starlette.responses import Response

from heedful.app.http import responses
from heedful.app.http.inference_route import InferenceRequest
from heedful.app.schemas import tree_bodies
from heedful.app.schemas.huggingface_bodies import ZeroShotParameters
from heedful.app.schemas.request_bodies import ClassifyRequest
from heedful.runtime.engine.work import Steps
from heedful.runtime.errors import BadInput
from heedful.runtime.zero_shot import Labels
from heedful.text.arrays import Doubles

HUB = "parameters."


def client_labels(body: ClassifyRequest) -> Labels | None:
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


async def answer(body: ClassifyRequest, labels: Labels, request: InferenceRequest) -> Response:
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

"""TEI's /predict: texts go to a classifier, pairs of texts to an NLI model."""

from typing import Annotated

from fastapi import APIRouter
from pydantic import Field, RootModel, Tag, field_validator
from pydantic_core import PydanticCustomError
from starlette.responses import Response

from heedful.app.http import responses
from heedful.app.http.inference_route import InferenceRequest, InferenceRoute
from heedful.app.schemas import request_bodies
from heedful.app.schemas.base import InputList, OpenModel, Text, by_tag, unsupported
from heedful.app.schemas.huggingface_bodies import (
    PARAMETERS,
    ClassifyParameters,
    HubFields,
    apply_function,
)
from heedful.app.schemas.response_bodies import Label
from heedful.runtime.inputs import Inputs
from heedful.runtime.model_registry import Task

router = APIRouter(route_class=InferenceRoute, tags=["models"])


class TextOrPair(RootModel[list[str]]):
    root: list[Text] = Field(fail_fast=True, json_schema_extra={"minItems": 1, "maxItems": 2})

    @field_validator("root")
    @classmethod
    def _one_or_two(cls, texts: list[str]) -> list[str]:
        if len(texts) not in (1, 2):
            raise PydanticCustomError(
                "length", "must be [text] or the pair [text, text]; a batch is [[text], [text], ..]"
            )
        return texts


class Batch(RootModel[list[TextOrPair]]):
    root: InputList[TextOrPair]

    @field_validator("root")
    @classmethod
    def _all_alike(cls, rows: list[TextOrPair]) -> list[TextOrPair]:
        if len({len(row.root) for row in rows}) > 1:
            raise unsupported("texts and pairs go to different models; send them in two requests")
        return rows


def _shape(value: object) -> str | None:
    if isinstance(value, str):
        return "<text>"
    if isinstance(value, list):
        return "<batch>" if value and isinstance(value[0], list) else "<row>"
    return None


class PredictRequest(request_bodies.Request, request_bodies.Truncation, HubFields, OpenModel):
    inputs: Annotated[
        Annotated[Text, Tag("<text>")]
        | Annotated[TextOrPair, Tag("<row>")]
        | Annotated[Batch, Tag("<batch>")],
        by_tag(_shape, "must be a text, a pair [text, text], or a list of such lists"),
        Field(description="A text, a pair, or a batch: all [text], or all pairs."),
    ]
    parameters: ClassifyParameters | None = PARAMETERS
    raw_scores: bool = Field(False, description="Logits instead of probabilities.")

    def read(self) -> Inputs:
        """The texts or pairs with their paths."""
        if isinstance(self.inputs, str):
            return Inputs([self.inputs], ["inputs"])
        if isinstance(self.inputs, TextOrPair):
            texts = self.inputs.root
            return Inputs(texts, [f"inputs[{i}]" for i in range(len(texts))], "inputs", len(texts))
        rows = [row.root for row in self.inputs.root]
        width = len(rows[0])
        paths = [f"inputs[{i}][{j}]" for i in range(len(rows)) for j in range(width)]
        return Inputs([text for row in rows for text in row], paths, "inputs", width)


@router.post("/predict", response_model=list[Label] | list[list[Label]])
async def predict(body: PredictRequest, request: InferenceRequest) -> Response:
    """The labels of each text or pair with their probabilities, best first, as on /classify."""
    inputs = body.read()
    task: Task = "nli" if inputs.texts_per_row == 2 else "classify"
    model = request.bind(task, body.model)
    raw = body.raw_scores or body.function != "softmax"
    truncate = request.truncates(body.truncate)
    result = await request.run(model.classify(inputs, truncate=truncate, raw=raw))
    scores = apply_function(result.value, body.function)
    top_k = body.parameters.top_k if body.parameters else None
    ranked = [responses.ranked(row, result.card, top_k, raw=raw) for row in scores]
    is_list = isinstance(body.inputs, Batch) or body.parameters is not None
    return responses.json(ranked if is_list else ranked[0])

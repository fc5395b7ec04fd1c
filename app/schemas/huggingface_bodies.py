"""Fields of Hugging Face's InferenceClient for text classification, with a model's labels or with the client's."""

from typing import Annotated, Any, Literal

import numpy.typing as npt
from pydantic import Field

from heedful.app.schemas.base import FIRST_ERROR, OpenModel, StrictModel, Text, refused
from heedful.runtime.answers import sigmoid
from heedful.runtime.zero_shot import MAX_LABELS, TEMPLATES

TopK = Annotated[int | None, Field(ge=1, description="Return this many of the best labels.")]
OtherTask = Annotated[
    None,
    refused("is of a task that no model here does; texts are classified without it"),
    Field(description="Of another of InferenceClient's tasks. Refused: texts are classified."),
]
LabelNames = Annotated[
    Annotated[list[Text], FIRST_ERROR] | None,
    Field(max_length=MAX_LABELS, json_schema_extra={"minItems": 1}),
]


class ZeroShotOptions(StrictModel):
    hypothesis_template: str | None = Field(
        None,
        description="The sentence that a label makes, with {} in its place. Without it a label makes "
        f"{len(TEMPLATES)} sentences, the first of them {TEMPLATES[0]!r}.",
    )
    multi_label: bool | None = Field(
        None,
        description="Whether several labels may fit a text: each then has a probability alone.",
    )


class HubParameters(OpenModel):
    top_k: TopK = None
    function_to_apply: Literal["softmax", "sigmoid", "none"] | None = Field(
        None, description="What makes scores of the logits: softmax unless said otherwise."
    )
    aggregation_strategy: OtherTask = None
    ignore_labels: OtherTask = None
    stride: OtherTask = None
    targets: OtherTask = None
    src_lang: OtherTask = None
    tgt_lang: OtherTask = None
    generate_parameters: OtherTask = None


class ClassifyParameters(HubParameters):
    candidate_labels: OtherTask = None
    hypothesis_template: OtherTask = None
    multi_label: OtherTask = None


class ZeroShotParameters(ZeroShotOptions, HubParameters):
    candidate_labels: LabelNames = Field(None, description="As `labels`.")


PARAMETERS = Field(
    None, description="Hugging Face's. With it, one text's labels are in a list of one."
)


class HubFields(StrictModel):
    parameters: HubParameters | None
    options: dict[str, Any] | None = Field(
        None, description="Hugging Face's. No effect: every model is loaded."
    )

    @property
    def function(self) -> str:
        return (self.parameters and self.parameters.function_to_apply) or "softmax"


def apply_function(scores: npt.NDArray[Any], function: str) -> npt.NDArray[Any]:
    """Scores (N, C) of an answer: probabilities or, unless `function` is softmax, of logits."""
    return sigmoid(scores) if function == "sigmoid" else scores

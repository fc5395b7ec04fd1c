"""Fields of Hugging Face's InferenceClient for text classification."""

from typing import Annotated, Any, Literal

import numpy.typing as npt
from pydantic import Field

from heedful.app.schemas.base import IGNORE_UNKNOWN, StrictModel, refused
from heedful.runtime.answers import sigmoid

TopK = Annotated[int | None, Field(ge=1, description="Return this many of the best labels.")]


OtherTask = Annotated[
    None,
    refused("is of a task that no model here does; texts are classified without it"),
    Field(description="Of another of InferenceClient's tasks. Refused: texts are classified."),
]


class ClassifyParameters(StrictModel):
    model_config = IGNORE_UNKNOWN

    top_k: TopK = None
    function_to_apply: Literal["softmax", "sigmoid", "none"] | None = Field(
        None, description="What makes scores of the logits: softmax unless said otherwise."
    )
    candidate_labels: OtherTask = None
    hypothesis_template: OtherTask = None
    multi_label: OtherTask = None
    aggregation_strategy: OtherTask = None
    ignore_labels: OtherTask = None
    stride: OtherTask = None
    targets: OtherTask = None
    src_lang: OtherTask = None
    tgt_lang: OtherTask = None
    generate_parameters: OtherTask = None


class HubFields(StrictModel):
    parameters: ClassifyParameters | None = Field(
        None, description="Hugging Face's. With it, one text's labels are in a list of one."
    )
    options: dict[str, Any] | None = Field(
        None, description="Hugging Face's. No effect: every model is loaded."
    )

    @property
    def function(self) -> str:
        return (self.parameters and self.parameters.function_to_apply) or "softmax"


def apply_function(scores: npt.NDArray[Any], function: str) -> npt.NDArray[Any]:
    """Scores (N, C) of an answer: probabilities or, unless `function` is softmax, of logits."""
    return sigmoid(scores) if function == "sigmoid" else scores

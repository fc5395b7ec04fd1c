"""Fields of Hugging Face's InferenceClient for text classification."""

from typing import Annotated, Any, Literal

import numpy.typing as npt
from pydantic import Field

from heedful.app.fields import PASS_OVER
from heedful.app.trees import Closed
from heedful.runtime.answers import sigmoid

TopK = Annotated[int | None, Field(ge=1, description="Return this many of the best labels.")]


class ClassifyParameters(Closed):
    model_config = PASS_OVER

    top_k: TopK = None
    function_to_apply: Literal["softmax", "sigmoid", "none"] | None = Field(
        None, description="What makes scores of the logits: softmax unless said otherwise."
    )


class HubFields(Closed):
    parameters: ClassifyParameters | None = Field(
        None, description="Hugging Face's. With it, one text's labels are in a list of one."
    )
    options: dict[str, Any] | None = Field(
        None, description="Hugging Face's. No effect: every model is loaded."
    )

    @property
    def function(self) -> str:
        return (self.parameters and self.parameters.function_to_apply) or "softmax"


def finished(scores: npt.NDArray[Any], function: str) -> npt.NDArray[Any]:
    """Scores (N, C) of an answer: probabilities or, unless `function` is softmax, of logits."""
    return sigmoid(scores) if function == "sigmoid" else scores

"""Bodies of requests. They are strict: no type is coerced.

Each field that TEI defines for a route is known here. A field is refused by name if it would change the answer and no
model here supports it. TEI's routes ignore unknown fields (`OpenModel`), the others refuse them.
"""

from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    Tag,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
)

from heedful.app.schemas.base import (
    InputList,
    OpenModel,
    StrictModel,
    Text,
    by_shape,
    refused,
    unsupported,
)
from heedful.app.schemas.huggingface_bodies import (
    PARAMETERS,
    HubFields,
    LabelNames,
    TopK,
    ZeroShotOptions,
    ZeroShotParameters,
)
from heedful.app.schemas.tree_bodies import Item, TaggedTextOrTree
from heedful.runtime.answers import FewerBits, Precision

PromptName = Annotated[
    str | None,
    refused("no model here has prompts; leave it out"),
    Field(description="TEI's. Refused: no model has prompts."),
]


def _no_ids(value: object) -> object:
    first = value[0] if isinstance(value, list) and value else None
    if isinstance(first, list) and first:
        first = first[0]
    if type(first) is int:
        raise unsupported("token ids are not accepted, each model has its own; send the text")
    return value


Texts = Annotated[
    Annotated[Text, Tag("<text>")] | Annotated[InputList[Text], Tag("<many>")],
    by_shape("must be a string or a list of strings"),
    Field(description="One text, or a list of them."),
    BeforeValidator(_no_ids),
]


Items = Annotated[
    TaggedTextOrTree | Annotated[InputList[Item], Tag("<many>")],
    by_shape("must be a string, a tree, or a list of them", "displacy", "conllu"),
    Field(description="One text, or a list of them; a tree may replace a text."),
    BeforeValidator(_no_ids),
]


Truncate = Annotated[
    bool | None,
    Field(
        description="Whether a text that is too long for the model is cut, not refused; "
        "null takes the setting HEEDFUL_TRUNCATE."
    ),
]


def _not_truncated(long: str | None, info: ValidationInfo) -> str | None:
    """Refuse `long` where `truncate` is true."""
    if long and info.data.get("truncate"):
        raise unsupported("a text is cut or has the mean of its windows; leave one of the two out")
    return long


Long = Annotated[
    Literal["mean"] | None,
    AfterValidator(_not_truncated),
    Field(
        description="mean: a text that is too long for the model has the mean of its windows' "
        "vectors. It may not be sent with truncate."
    ),
]


class Request(StrictModel):
    model: str | None = Field(
        None, description="A name from /models; defaults to the task's model."
    )


class TruncateOption(Request):
    truncate: Truncate = None


class Truncation(StrictModel):
    """TEI's two fields."""

    truncate: Truncate = None
    truncation_direction: Annotated[
        Literal["Left", "Right", "left", "right"],
        # Client generators make names from an enum's values, in which case does not count.
        WithJsonSchema({"type": "string", "enum": ["Left", "Right"]}),
    ] = Field("Right", description="Texts are cut at their end: Left is refused with truncate.")

    @field_validator("truncation_direction")
    @classmethod
    def _cut_at_the_end(cls, direction: str, info: ValidationInfo) -> str:
        if direction.lower() == "left" and info.data.get("truncate"):
            raise unsupported("texts are cut at their end only; send Right")
        return direction


Dimensions = Annotated[
    int | None, Field(ge=1, description="Keep this many leading values; cut before normalizing.")
]


OutputDtype = Literal["float", FewerBits]
"""Numbers of a vector as Cohere, Voyage and Mistral name them."""


class ConfidenceOption(StrictModel):
    trust: bool = Field(False, description="Also say how far each answer can be trusted.")


class EmbedRequest(Request, Truncation, OpenModel):
    inputs: Items
    normalize: bool = Field(True, description="Scale each row to length 1.")
    dimensions: Dimensions = None
    precision: Precision = Field(
        "float32",
        description="int8 and uint8 send a byte a value, binary and ubinary a bit: eight values in a number.",
    )
    long: Long = None
    prompt_name: PromptName = None


class Pair(StrictModel):
    premise: Item
    hypothesis: Item


class OnePair(TruncateOption, ConfidenceOption):
    premise: Item
    hypothesis: Item


class ManyPairs(TruncateOption, ConfidenceOption):
    pairs: InputList[Pair]


NLIRequest = Annotated[
    Annotated[OnePair, Tag("<object>")] | Annotated[ManyPairs, Tag("<pairs>")],
    by_shape("must be an object with premise and hypothesis, or with pairs", "pairs"),
]


class TwoTexts(StrictModel):
    a: Text
    b: Text


class RelatednessRequest(TruncateOption, ConfidenceOption):
    pairs: InputList[TwoTexts]


class ClassifyRequest(TruncateOption, ZeroShotOptions, HubFields, ConfidenceOption):
    inputs: Items
    labels: LabelNames = Field(
        None, description="Labels of the client's, in place of those of a model."
    )
    parameters: ZeroShotParameters | None = PARAMETERS
    top_k: TopK = None


class TokenizeRequest(TruncateOption, OpenModel):
    inputs: Texts
    add_special_tokens: bool = Field(
        True, description="TEI's. No effect: tokens are words, and none of them is special."
    )
    prompt_name: PromptName = None

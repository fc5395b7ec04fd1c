"""Bodies of requests and answers. Requests are strict: no type is taken for another.

A field that TEI defines for a route is known here. One that would change the answer, and that no
model here can honour, is refused by name.
"""

from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from runtime.errors import BadInput


def _one_or_many(value: object) -> str | None:
    return "<one>" if isinstance(value, str) else "<many>" if isinstance(value, list) else None


Texts = Annotated[
    Annotated[str, Tag("<one>")] | Annotated[list[str], Tag("<many>")],
    Discriminator(
        _one_or_many,
        custom_error_type="texts_type",
        custom_error_message="must be a string or a list of strings",
    ),
    Field(description="One text, or a list of them."),
]


class Request(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    model: str | None = Field(None, description="A name from /models; default the task's model.")


class Cutting(Request):
    truncate: bool | None = Field(
        False, description="Cut a text that is too long for the model, instead of refusing it."
    )


class EmbedRequest(Cutting):
    inputs: Texts
    normalize: bool = Field(True, description="Scale each row to norm 1.")
    dimensions: int | None = Field(
        None, ge=1, description="Keep this many leading values; cut before the norm is taken."
    )
    truncation_direction: Literal["Left", "Right", "left", "right"] = Field(
        "Right", description="TEI's. Texts are cut at their end: Left is refused with truncate."
    )
    prompt_name: str | None = Field(None, description="TEI's. No model has prompts: refused.")

    def check(self, width: int) -> None:
        """Raise BadInput for what a model of `width` dimensions cannot honour."""
        if self.dimensions is not None and self.dimensions > width:
            raise BadInput(
                f"dimensions is {self.dimensions}: the model has {width}",
                param="dimensions",
                code="invalid_value",
            )
        if self.truncate and self.truncation_direction.lower() == "left":
            raise BadInput(
                "truncation_direction: texts are cut at their end only; send Right",
                param="truncation_direction",
                code="unsupported",
            )
        refuse_prompt(self.prompt_name)


class Pair(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    premise: str
    hypothesis: str


class OnePair(Cutting):
    premise: str
    hypothesis: str


class ManyPairs(Cutting):
    pairs: list[Pair]


def _pair_or_pairs(value: object) -> str | None:
    if not isinstance(value, dict):
        return None
    return "<many>" if "pairs" in value else "<one>"


NLIRequest = Annotated[
    Annotated[OnePair, Tag("<one>")] | Annotated[ManyPairs, Tag("<many>")],
    Discriminator(
        _pair_or_pairs,
        custom_error_type="object_type",
        custom_error_message="must be an object with premise and hypothesis, or with pairs",
    ),
]


class TwoTexts(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    a: str
    b: str


class RelatednessRequest(Cutting):
    pairs: list[TwoTexts]


class ClassifyRequest(Cutting):
    inputs: Texts
    top_k: int | None = Field(None, ge=1, description="Keep this many of the best labels.")


class TokenizeRequest(Cutting):
    inputs: Texts
    add_special_tokens: bool = Field(
        True,
        description="TEI's. Tokens are words, no special ones among them: either value is the same.",
    )
    prompt_name: str | None = Field(None, description="TEI's. No model has prompts: refused.")

    def check(self) -> None:
        refuse_prompt(self.prompt_name)


def refuse_prompt(name: str | None) -> None:
    if name is not None:
        raise BadInput(
            "prompt_name: no model here has prompts; leave it out",
            param="prompt_name",
            code="unsupported",
        )


# Answers. They are written from arrays, never through these: they are the OpenAPI's words.


NLILabel = Literal["entailment", "neutral", "contradiction"]
NLI_LABELS: tuple[NLILabel, ...] = get_args(NLILabel)


class NLIAnswer(BaseModel):
    label: NLILabel
    scores: dict[NLILabel, float]


class NLIAnswers(BaseModel):
    results: list[NLIAnswer]


class RelatednessAnswer(BaseModel):
    scores: list[float] = Field(description="From 1 to 5, one for each pair.")


class Label(BaseModel):
    label: str
    score: float


class Token(BaseModel):
    id: int = Field(description="Of the word; of its first piece where the model reads pieces.")
    text: str
    start: int = Field(description="Character offset in the input.")
    stop: int
    head: int = Field(description="Index of the governor; its own for a root.")
    dep: str = Field(description="Universal Dependencies relation.")
    known: bool = Field(description="Whether the model's vocabulary holds the word.")


class Cards(BaseModel):
    models: list[dict[str, Any]]


class OpenAIModel(BaseModel):
    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class OpenAIModels(BaseModel):
    object: Literal["list"]
    data: list[OpenAIModel]


class Status(BaseModel):
    status: Literal["ok"]


class Readiness(BaseModel):
    status: Literal["ready"]
    refused: list[str] = Field(description="Why the last reload left a model as it was, if it did.")


class Reloaded(BaseModel):
    loaded: list[str] = Field(description="Models that are new or have changed.")
    unchanged: list[str]
    removed: list[str]


class Parser(BaseModel):
    name: str
    fingerprint: str


class Info(BaseModel):
    version: str
    device: str
    provider: str = Field(description="Execution provider in use, asked of the session.")
    limits: dict[str, float]
    models: list[str]
    parser: Parser


class ErrorBody(BaseModel):
    message: str
    type: str
    param: str | None
    code: str


class ErrorEnvelope(BaseModel):
    error: ErrorBody

"""Bodies of answers. Answers are written from arrays; these classes only describe them in the OpenAPI document."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from heedful.runtime.model_registry import Task
from heedful.text.kinds import NLILabel


class Trust(BaseModel):
    confidence: float | None = Field(
        description="The answered label's probability; null without labels."
    )
    composed_words: float = Field(
        description="Share of tokens that the vocabulary does not list, in both texts of a pair."
    )
    typical: float | None = Field(
        description="Share of training sentences that lie as far from the others as this text, or as "
        "the farther one of a pair. Below `typical.threshold` of the card the input is not typical. "
        "null where the bundle holds no index."
    )


class NLIAnswer(BaseModel):
    label: NLILabel
    scores: dict[NLILabel, float]
    trust: Trust | None = Field(None, description="If requested.")


class NLIAnswers(BaseModel):
    results: list[NLIAnswer]


class RelatednessAnswer(BaseModel):
    scores: list[float] = Field(description="From 1 to 5, one for each pair.")
    trust: list[Trust] | None = Field(None, description="If requested, one for each pair.")


class Label(BaseModel):
    label: str | None = Field(description="null where the model abstains.")
    score: float


class TrustedLabels(BaseModel):
    """If `trust` is requested."""

    labels: list[Label]
    trust: Trust


class FittingLabels(BaseModel):
    """Of a request with `labels`."""

    labels: list[Label] = Field(description="The client's, best first.")
    none: float = Field(description="Probability that none of the labels fits.")
    trust: Trust | None = Field(None, description="If requested.")


Classified = (
    list[Label]
    | list[list[Label]]
    | TrustedLabels
    | list[TrustedLabels]
    | FittingLabels
    | list[FittingLabels]
)
"""Of one input or several."""


class Token(BaseModel):
    id: int = Field(description="The word's id, or its first piece's if the model reads pieces.")
    text: str
    start: int = Field(
        description="Offset in the input, in Unicode characters (code points). JavaScript and Java count a "
        "character beyond U+FFFF, as most emoji are, as two."
    )
    stop: int = Field(description="Likewise, of the first character after it.")
    head: int = Field(description="Index of its head; its own index for a root.")
    dep: str = Field(description="Universal Dependencies relation.")
    known: bool = Field(description="Whether the model's vocabulary holds the word.")
    composed: bool = Field(
        description="Whether the word, which the vocabulary does not hold, is read by its spelling."
    )


class Cards(BaseModel):
    models: list[dict[str, Any]]
    defaults: dict[Task, str] = Field(
        description="The model that does each task when a request names none."
    )


class Status(BaseModel):
    status: Literal["ok"]


class Readiness(BaseModel):
    status: Literal["ready"]
    golden: dict[str, float | None] | None = Field(
        None,
        description="With `deep`: how far each model's golden vectors have moved, null without any.",
    )
    refused: list[str] = Field(description="Why the last reload left models unchanged, if it did.")


class Reloaded(BaseModel):
    loaded: list[str] = Field(description="Models that are new or have changed.")
    unchanged: list[str]
    removed: list[str]


class Parser(BaseModel):
    name: str
    fingerprint: str


class Pooling(BaseModel):
    pooling: str = Field(description="The encoder, which pools in its own way.")


class ModelType(BaseModel):
    embedding: Pooling


class Info(BaseModel):
    """TEI's fields, of the model that /embed takes without a name, and our own."""

    model_id: str
    served_model_name: str = Field(description="The same: what a request's `model` may be.")
    model_dtype: Literal["int8", "float32"]
    model_type: ModelType
    max_client_batch_size: int = Field(
        description="Inputs of one request, HEEDFUL_MAX_BATCH_INPUTS."
    )
    max_input_length: int = Field(description="Tokens of a text, which are words of most models.")
    auto_truncate: bool = Field(description="HEEDFUL_TRUNCATE.")
    version: str
    device: str
    provider: str = Field(description="Execution provider in use, as the session reports it.")
    limits: dict[str, float]
    models: list[str]
    versions: dict[str, str] = Field(description="Of what was loaded for each model.")
    precision: dict[str, Literal["int8", "float32"]] = Field(
        description="How each model's matrix products are computed here."
    )
    parser: Parser | None = Field(description="null where no model needs one.")
    golden: dict[str, float | None] = Field(
        description="Largest change of a value of each model's golden vectors, at the last look; "
        "null for a bundle without them, which nothing checks on this machine."
    )


class ErrorBody(BaseModel):
    message: str
    type: str
    param: str | None
    code: str


class ErrorEnvelope(BaseModel):
    error: ErrorBody


class ProtocolError(BaseModel):
    """On the routes of the Open Inference Protocol."""

    error: str = Field(description="The message.")
    type: str
    param: str | None
    code: str

"""The card of a bundle: what a model is, what it was made from, and how well it does."""

import hashlib
import json
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from heedful.text.kinds import NLI_LABELS, Kind

FORMAT = 3
CARD, ENCODER, HEAD = "card.json", "encoder.onnx", "head.onnx"
EXPLAIN = "explain.onnx"
ENCODER_INT8, EXPLAIN_INT8 = "encoder.int8.onnx", "explain.int8.onnx"
VOCAB, TOKENIZER = "vocab.txt", "tokenizer.json"

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Name = Annotated[str, Field(pattern=r"^[a-z0-9-]+$")]


class _Frozen(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class EncoderCard(_Frozen):
    name: str
    config: dict[str, bool | int | float | str | None]
    parameters: int  # without the word table or the transformer in its place
    paper: str


class ParserCard(_Frozen):
    name: str
    fingerprint: Sha256  # text.parse.fingerprint


class ParityCard(_Frozen):
    """The graphs against what they were exported from."""

    max_abs_error: float
    tolerance: float
    cases: int
    against: str


class ScoreCard(_Frozen):
    dataset: str
    split: str
    metric: str
    value: float  # of most metrics in [0, 1]; a correlation may be negative, an error above 1
    rows: int


class Int8Card(_Frozen):
    """What the int8 graphs were taken for: the score of both on dev, and how near the vectors are."""

    products: int = Field(ge=1)  # computed in integers
    left: int = Field(ge=0)  # and in float32: what they read differs in its last bit by the batch
    dataset: str
    metric: str
    float32: float  # score on dev
    int8: float
    cosine: float  # the least of a sentence's two vectors
    sentences: int  # of dev, that were compared
    company: float  # most that a value of a vector differs between alone and in a batch


class DataCard(_Frozen):
    name: str
    rows: int
    licence: str
    note: str


class TrainingCard(_Frozen):
    data: tuple[DataCard, ...]
    vectors: str
    seed: int
    epochs: int
    config: str
    command: str
    commit: str
    teacher: str = ""  # the run whose answers were learnt beside the labels


class CardContent(_Frozen):
    """All that is known of a model. `labels` is the class order of the logits."""

    format: int = Field(ge=FORMAT, le=FORMAT)
    name: Name
    task: str
    kind: Kind
    encoder: EncoderCard
    dimension: int = Field(ge=1)
    labels: tuple[str, ...]
    max_tokens: int = Field(ge=1)
    tree: bool  # whether the graph reads heads: a model that does not never pays for a parse
    cost: Literal["linear", "quadratic"]  # of the encoder in the number of tokens
    alpha: float | None  # default of the graph's input alpha; None where the graph has none
    parser: ParserCard
    files: dict[str, Sha256]
    parity: ParityCard
    int8: Int8Card | None = None  # where the bundle holds graphs of integer products
    scores: tuple[ScoreCard, ...]
    training: TrainingCard
    licence: str

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.kind == "nli" and sorted(self.labels) != sorted(NLI_LABELS):
            raise ValueError(f"labels of an nli model are {sorted(NLI_LABELS)}, in any order")
        if self.kind == "classification" and len(set(self.labels)) != max(2, len(self.labels)):
            raise ValueError("labels of a classification model are two or more, all different")
        if self.kind in ("relatedness", "embedding") and self.labels:
            raise ValueError(f"a model of kind {self.kind} has no labels")
        expected = file_names(self.kind, pieces=self.pieces)
        if set(self.files) - {EXPLAIN, ENCODER_INT8, EXPLAIN_INT8} != set(expected):
            raise ValueError(f"files must name exactly {', '.join(expected)}")
        if (ENCODER_INT8 in self.files) != (self.int8 is not None):
            raise ValueError(f"int8 and {ENCODER_INT8} belong together")
        if (EXPLAIN_INT8 in self.files) != (self.int8 is not None and EXPLAIN in self.files):
            raise ValueError(
                f"{EXPLAIN_INT8} stands beside {EXPLAIN} and {ENCODER_INT8}, or not at all"
            )
        return self

    @property
    def pieces(self) -> bool:
        """Whether the graph reads pieces of words (text.pieces), not words."""
        return TOKENIZER in self.files

    def identity(self) -> str:
        """First 12 hex digits of SHA-256 over the card's content, the files' hashes among it.

        A field at its default is left out, so that a card outlives fields that come later.
        """
        fields = self.model_dump(mode="json", exclude={"version"}, exclude_defaults=True)
        content = json.dumps(fields, sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:12]


class Card(CardContent):
    """The content, and the version that vouches for it."""

    version: str = Field(pattern=r"^[0-9a-f]{12}$")

    @model_validator(mode="after")
    def _untouched(self) -> Self:
        if self.version != self.identity():
            raise ValueError("version is not that of the card and its files: copy the bundle anew")
        return self


def file_names(kind: Kind, *, pieces: bool = False) -> tuple[str, ...]:
    """The files beside the card of a bundle of this kind, of a model of pieces or of words.

    explain.onnx may stand there too, and the int8 graphs.
    """
    lexicon = TOKENIZER if pieces else VOCAB
    return (ENCODER, lexicon) if kind == "embedding" else (ENCODER, HEAD, lexicon)

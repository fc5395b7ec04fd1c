"""The card of a bundle: what a model is, what it was made from, and how well it does."""

import hashlib
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

FORMAT = 2
"""1: models of words. 2: models of pieces too; a bundle bears the first format that can say what it is."""
CARD, ENCODER, HEAD = "card.json", "encoder.onnx", "head.onnx"
VOCAB, TOKENIZER = "vocab.txt", "tokenizer.json"

Kind = Literal["nli", "classification", "relatedness", "embedding"]
NLI_LABELS = frozenset({"entailment", "neutral", "contradiction"})
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
    value: float = Field(ge=0, le=1)
    rows: int


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


class Card(_Frozen):
    """All that is known of a model. `labels` is the class order of the logits."""

    format: int = Field(ge=1, le=FORMAT)
    name: Name
    version: str = Field(pattern=r"^[0-9a-f]{12}$")
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
    scores: tuple[ScoreCard, ...]
    training: TrainingCard
    licence: str

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.kind == "nli" and (set(self.labels) != NLI_LABELS or len(self.labels) != 3):
            raise ValueError(f"labels of an nli model are {sorted(NLI_LABELS)}, in any order")
        if self.kind == "classification" and len(set(self.labels)) != max(2, len(self.labels)):
            raise ValueError("labels of a classification model are two or more, all different")
        if self.kind in ("relatedness", "embedding") and self.labels:
            raise ValueError(f"a model of kind {self.kind} has no labels")
        expected = file_names(self.kind, pieces=self.pieces)
        if set(self.files) != set(expected):
            raise ValueError(f"files must name exactly {', '.join(expected)}")
        if self.version != version(self.files):
            raise ValueError("version is not that of the files")
        return self

    @property
    def pieces(self) -> bool:
        """Whether the graph reads pieces of words (text.pieces), not words."""
        return self.format > 1 and TOKENIZER in self.files


def file_names(kind: Kind, *, pieces: bool = False) -> tuple[str, ...]:
    """The files beside the card of a bundle of this kind, of a model of pieces or of words."""
    lexicon = TOKENIZER if pieces else VOCAB
    return (ENCODER, lexicon) if kind == "embedding" else (ENCODER, HEAD, lexicon)


def version(files: Mapping[str, str]) -> str:
    """First 12 hex digits of SHA-256 over the files' names and hashes."""
    lines = "".join(f"{name} {files[name]}\n" for name in sorted(files))
    return hashlib.sha256(lines.encode()).hexdigest()[:12]

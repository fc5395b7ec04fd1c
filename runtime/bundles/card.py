"""A bundle's card: the model, its training data and its scores."""

import hashlib
import json
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from heedful.text.kinds import ENGLISH, NLI_LABELS, Kind

FORMAT = 3
CARD, ENCODER, HEAD = "card.json", "encoder.onnx", "head.onnx"
EXPLAIN = "explain.onnx"
IMPORTED = "transformer"  # the encoder's name in the card of a bundle that `heedful import` wrote
ENCODER_INT8, EXPLAIN_INT8 = "encoder.int8.onnx", "explain.int8.onnx"
VOCAB, TOKENIZER = "vocab.txt", "tokenizer.json"
GOLDEN, TYPICAL = "golden.npz", "typical.npz"
MEASURED = (GOLDEN, TYPICAL)
"""Optional files with measurements of the other files."""

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class _Frozen(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class EncoderCard(_Frozen):
    name: str
    config: dict[str, bool | int | float | str | None]
    parameters: int  # without the word table or the transformer that replaces it
    paper: str


class ParserCard(_Frozen):
    name: str
    fingerprint: Sha256  # text.parse.fingerprint


class ParityCard(_Frozen):
    """Exported graphs compared with the original model."""

    max_abs_error: float  # of logits above 1 relative to the largest (export.parity)
    tolerance: float
    cases: int
    against: str


class ScoreCard(_Frozen):
    dataset: str
    split: str
    metric: str
    value: float  # in [0, 1] for most metrics; a correlation may be negative, an error above 1
    rows: int


class Int8Card(_Frozen):
    """Why the int8 graphs were accepted: both dev scores and the vector similarity."""

    products: int = Field(ge=1)  # matrix products computed in integers
    # Products kept in float32: their input depends on the batch in its last bit.
    left: int = Field(ge=0)
    dataset: str
    metric: str
    float32: float  # score on dev, of the trained model since the card names `trained`
    int8: float
    cosine: float  # lowest between a sentence's two vectors
    sentences: int  # compared, from dev
    company: float  # batch deviation: largest difference of a value between alone and in a batch


class TrainedCard(_Frozen):
    """The served graphs, on a CPU and in int8 if the bundle has it, compared with the trained model, on dev."""

    sentences: int = Field(ge=1)
    cosine: float  # lowest between a sentence's two vectors
    cosine_float32: float  # likewise, of encoder.onnx
    # Largest change of a probability, or of a relatedness from 1 to 5; None without a head.
    answers: float | None


class TypicalCard(_Frozen):
    """The index of typical inputs."""

    dataset: str
    sentences: int = Field(ge=1)  # training sentences whose distances are stored
    centroids: int = Field(ge=1)
    threshold: float = Field(gt=0, lt=1)  # an input below this share counts as untypical


class DistilledCard(_Frozen):
    """The student of `heedful distill` compared with its teacher, on held-out texts."""

    teacher: str
    texts: int = Field(ge=1)
    cosine: float  # to the teacher's vector, the mean
    neighbours: float  # share of the teacher's ten nearest texts that are among the student's
    texts_per_second: float  # one thread
    teacher_texts_per_second: float | None  # in torch and bfloat16; None of a file of vectors
    bytes: int  # of the bundle's files
    teacher_bytes: int | None


class ControlCard(_Frozen):
    """The dev score with one part of the model replaced."""

    name: str
    value: float


class GradientsCard(_Frozen):
    """Integrated gradients on sentences of dev: `python -m tools trust` measured them."""

    sentences: int = Field(ge=1)  # of two tokens or more, both of a pair
    median: float  # of the completeness error, relative to the change of the score
    p95: float
    complete: float  # share of sentences with an error below 5 %
    spread: float  # of the weights, 95th percentile
    intervals: float  # the mean
    correlation: float | None  # of the first pooling with their size, the mean


class TrustCard(_Frozen):
    """How far this model's explanations can be trusted: `python -m tools trust` measured it."""

    dataset: str
    metric: str
    rows: int = Field(ge=1)
    value: float  # the dev score on these rows, in float32
    controls: tuple[ControlCard, ...]
    sentences: int = Field(ge=1)  # of dev, with curves
    attention: float  # normalised comprehensiveness, the mean: 1 is the best order, 0 the worst
    evidence: float
    random: float
    wins: float  # share of sentences where attention's order beats the random ones
    correlation: float | None  # of the first pooling with the size of the evidence, the mean
    gradients: GradientsCard | None = None


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
    teacher: str = ""  # the runs whose answers were learned in addition to the labels
    start: str = ""  # the run or bundle whose weights training started from
    # All fields of the configuration: its file may have changed since. {} in older cards.
    settings: dict[str, Any] = Field(default_factory=dict)


class CardContent(_Frozen):
    """The card without its version. `labels` is in the order of the logits."""

    format: int = Field(ge=FORMAT, le=FORMAT)
    name: str = Field(pattern=r"^[a-z0-9-]+$")
    task: str
    kind: Kind
    encoder: EncoderCard
    dimension: int = Field(ge=1)
    # Values after the sentence vector in the encoder's output, only for the head.
    head_features: int = Field(default=0, ge=0)
    labels: tuple[str, ...]
    max_tokens: int = Field(ge=1)
    tree: bool  # whether the graph reads heads; a model without trees never pays for a parse
    cost: Literal["linear", "quadratic"]  # the encoder's cost in the number of tokens
    alpha: float | None  # default of the graph's input alpha; None if there is no such input
    # Whether the whole text is split into word pieces (text.whole_text), not each word.
    whole_text: bool = False
    # Rows for composing unlisted words; 0: one vector for all.
    composed: int = Field(default=0, ge=0)
    # Logits are divided by it, so that scores are calibrated.
    temperature: float = Field(default=1.0, gt=0)
    parser: ParserCard
    files: dict[str, Sha256]
    parity: ParityCard
    int8: Int8Card | None = None  # if the bundle holds int8 graphs
    trained: TrainedCard | None = None  # if `heedful export` had the dev split
    distilled: DistilledCard | None = None
    multi_label: bool = False  # whether a text may have several labels, each a sigmoid's
    # Probability below which /classify answers no label.
    abstain: float | None = Field(default=None, ge=0, le=1)
    typical: TypicalCard | None = None  # if the bundle holds an index of typical inputs
    trust: TrustCard | None = None
    scores: tuple[ScoreCard, ...]
    training: TrainingCard
    licence: str

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.kind == "nli" and sorted(self.labels) != sorted(NLI_LABELS):
            raise ValueError(f"labels of an nli model are {sorted(NLI_LABELS)}, in any order")
        if self.kind == "classification" and len(set(self.labels)) != max(2, len(self.labels)):
            raise ValueError("labels of a classification model are two or more, all different")
        if self.kind != "classification" and (self.multi_label or self.abstain is not None):
            raise ValueError("multi_label and abstain belong to a classification model")
        if self.kind in ("relatedness", "embedding") and self.labels:
            raise ValueError(f"a model of kind {self.kind} has no labels")
        required = {ENCODER, TOKENIZER if self.pieces else VOCAB}
        if self.kind != "embedding":
            required.add(HEAD)
        if set(self.files) - {EXPLAIN, ENCODER_INT8, EXPLAIN_INT8, *MEASURED} != required:
            raise ValueError(
                f"files must name {', '.join(sorted(required))}, and no other files but optional ones"
            )
        if (TYPICAL in self.files) != (self.typical is not None):
            raise ValueError(f"typical and {TYPICAL} belong together")
        if (ENCODER_INT8 in self.files) != (self.int8 is not None):
            raise ValueError(f"int8 and {ENCODER_INT8} belong together")
        if (EXPLAIN_INT8 in self.files) != (self.int8 is not None and EXPLAIN in self.files):
            raise ValueError(
                f"{EXPLAIN_INT8} must come with {EXPLAIN} and {ENCODER_INT8}, and they with it"
            )
        return self

    @property
    def pieces(self) -> bool:
        """Whether the graph reads word pieces (text.pieces), not words."""
        return TOKENIZER in self.files

    @property
    def needs_parser(self) -> bool:
        """Whether the model needs a pipeline: for trees, or for words split by other rules than `text.english`'s."""
        return self.tree or self.parser.name != ENGLISH

    @property
    def width(self) -> int:
        """Length of the vectors from encoder.onnx to head.onnx."""
        return self.dimension + self.head_features

    def fields(self) -> dict[str, Any]:
        """The fields that `export.bundle_writer.write` takes: all but those that it computes."""
        return self.model_dump(exclude={"format", "name", "version", "files"})

    def identity(self) -> str:
        """First 12 hex digits of SHA-256 over the card's content, including the files' hashes.

        Fields at their defaults are left out, so that new optional fields do not change old versions.
        """
        fields = self.model_dump(mode="json", exclude={"version"}, exclude_defaults=True)
        content = json.dumps(fields, sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:12]


class Card(CardContent):
    """A card with its version, which is a hash of the content."""

    version: str = Field(pattern=r"^[0-9a-f]{12}$")

    @model_validator(mode="after")
    def _untouched(self) -> Self:
        if self.version != self.identity():
            raise ValueError("version is not that of the card and its files: copy the bundle again")
        return self

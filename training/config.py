"""The configuration of a run: a TOML file, validated before anything is loaded."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from heedful.text.composition import LEAST_ROWS
from heedful.training.errors import ConfigError

Precision = Literal["float32", "bfloat16"]
Device = Literal["cpu", "cuda"]
Seed = Annotated[int, Field(ge=0, lt=2**32)]


@dataclass(frozen=True, slots=True)
class Paths:
    """Where a run reads and writes."""

    run: Path
    data: Path
    parser: str
    cache: Path
    config: Path


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class EncoderConfig(Section):
    """`config` holds the keywords of the encoder, which `models.registry.build` checks."""

    name: str
    config: dict[str, bool | int | float | str] = Field(default_factory=dict)
    frozen: bool = False
    """The encoder and the words stay as `start` has them, and the head is trained. Where this encoder adds weights to
    that one, only what it adds is trained, of the head too. A transformer under it is trained unless it is frozen
    too: then each text is encoded once, without dropout, and the cache keeps it."""


class WordsConfig(Section):
    """The vocabulary and its initial word vectors."""

    vectors: str = "wordbridge"
    """`wordbridge`, `minilm`, `word2vec` (trained on the run's texts), or the path of a bundle or a GloVe file."""
    dim: int = Field(default=300, gt=0)
    scale: float = Field(default=1.0, gt=0)
    """Root mean square length of the initial vectors."""
    frozen: bool = False
    min_count: int = Field(default=2, ge=1)
    """A word without a vector must occur this often in the training texts; rarer ones are unknown."""
    background_min_count: int | None = Field(default=None, ge=1)
    """Also take words with a vector that occur this often in the task's background texts."""
    limit: int | None = Field(default=None, ge=1)
    """Listed words at most: the most frequent. Where there is none, all of those above."""
    composed: int = Field(default=0, ge=0, lt=2**31)
    """Rows of the feature table that composes unlisted words (text.composition); 0: one vector for all of them."""
    composed_share: float = Field(default=0.1, ge=0, lt=1)
    """Share of the listed words that training composes, so that both readings of a word agree."""
    four_bits: bool = False
    """Whether word vectors are rounded in training as `heedful export --storage small` stores them."""

    @field_validator("composed")
    @classmethod
    def _none_or_enough(cls, rows: int) -> int:
        if 0 < rows < LEAST_ROWS:
            raise ValueError(f"give 0, or at least {LEAST_ROWS}; 14336 is a good size")
        return rows


class TransformerConfig(Section):
    """A Hugging Face BertModel in place of the word table; `words` is then ignored."""

    name: str = "minilm"
    """`minilm`, or a folder with config.json, model.safetensors and tokenizer.json."""
    dim: int = Field(default=384, gt=0)
    finetune: Literal["all", "layers", "low-rank", "none"] = "all"
    """`layers` trains all but the embedding table, which holds half of the weights and would cost the
    optimiser as much as all the rest. `low-rank` trains a change of low rank to each layer's matrices (LoRA), and
    the biases and norms: a tenth of the weights, which are all that `best.pt` then holds."""
    rank: int = Field(default=32, gt=0)
    """Of the changes where `finetune` is `low-rank`."""
    frozen_layers: int = Field(default=0, ge=0)
    """Number of lowest layers that are frozen, with the embeddings below them."""
    sentence: Literal["cls", "mean"] = "cls"
    """The sentence vector given to the encoder: [CLS] (BERT), or the mean of all pieces (all-MiniLM-L6-v2
    and others trained with mean pooling)."""
    dropout: float = Field(default=0.1, ge=0, lt=1)
    """Dropout of its states and its attention."""
    rate: float = Field(default=3e-5, gt=0)
    """Learning rate of its pretrained weights."""
    frozen: bool = False
    """Whether it stays as `start` has it, like the frozen encoder above it."""


class HeadConfig(Section):
    """A file that leaves one out gets that of the encoder's paper (`validate`)."""

    hidden: int = Field(default=300, gt=0)
    dropout: float = Field(default=0.0, ge=0, lt=1)


class OptimiserConfig(Section):
    """How weights are optimised. Word vectors always use Adam, of which torch has a sparse form."""

    name: Literal["adam", "adadelta", "sgd"] = "adam"
    """Adadelta is DiSAN's (rate 0.5) and DSA's on SST, SGD is LAMA's (rate 0.05)."""
    momentum: float = Field(default=0.9, ge=0, lt=1)
    """For SGD only."""
    schedule: Literal["cosine", "constant", "halve"] = "cosine"
    """After the warm-up: a cosine to zero over all epochs, constant, or halved after each epoch whose loss
    is not below the lowest so far (DSA halves after five of them, on SST after two)."""
    rate: float = Field(default=1e-3, gt=0)
    word_lr: float = Field(default=1e-3, gt=0)
    """Learning rate of the word vectors, whose own optimiser updates only the rows in a batch."""
    batch: int = Field(default=64, gt=0)
    weight_decay: float = Field(default=0.0, ge=0)
    """L2 penalty in the loss, half of this times the squares of all weights but the word vectors', as the papers have
    it. Records of before 2026-11-23 with Adam decayed the weights apart from the gradient (AdamW), which is weaker."""
    warmup: float = Field(default=0.05, ge=0, lt=1)
    """As a share of all steps."""
    clip: float = Field(default=5.0, gt=0)
    label_smoothing: float = Field(default=0.0, ge=0, lt=1)
    precision: Precision = "float32"
    """Precision of the products in training (torch.autocast): processors with AMX multiply bfloat16 ten times
    as fast. Weights, dev scores and exported graphs are float32 in either case."""
    average: float = Field(default=0.0, ge=0, lt=1)
    """Decay of the moving average of the weights that is evaluated and exported; 0 turns it off.
    The first updates decay faster, so that the initial weights are soon forgotten."""


class DistillationConfig(Section):
    """Weights of the two terms of an embedding model's loss, and the sizes that it is trained for."""

    teachers: tuple[Literal["minilm", "mpnet"], ...] = Field(
        ("minilm",), min_length=1, max_length=2
    )
    """Whose vectors are the targets; of two, the second's are turned into the first's axes and added to them."""
    regression: float = Field(default=1.0, ge=0)
    """Weight of 1 - cosine between the model's vector and the teacher's."""
    ranking: float = Field(default=1.0, ge=0)
    """Weight of the divergence between the model's and the teacher's similarities in a batch."""
    temperature: float = Field(default=0.05, gt=0)
    """By which the similarities of a batch are divided before they become probabilities."""
    dimensions: tuple[Annotated[int, Field(gt=0)], ...] = (64, 128, 256)
    """Leading parts of the vector that are trained as vectors too, in addition to the whole."""
    neighbourhood: int = Field(default=0, ge=0)
    """Sentences of a group of near ones, after the teacher, that are drawn together; 0 draws each alone."""

    @model_validator(mode="before")
    @classmethod
    def _without_relations(cls, fields: Any) -> Any:
        """Records and checkpoints of earlier versions hold the default of a term that is gone."""
        if isinstance(fields, dict) and fields.get("relations") == 10.0:
            return {name: value for name, value in fields.items() if name != "relations"}
        return fields


class TeacherConfig(Section):
    """A finished run with the same classes, whose predictions are targets along with the labels."""

    run: Path | Annotated[tuple[Path, ...], Field(min_length=1)]
    """Or several runs: the mean of their predictions."""
    weight: float = Field(default=0.5, gt=0, le=1)
    """Weight of the teacher's probabilities; the label has the rest."""
    doubt: float = Field(default=0.0, ge=0, lt=1)
    """Where the teacher finds the label less likely than this, the label alone is the target."""

    @property
    def runs(self) -> tuple[Path, ...]:
        return (self.run,) if isinstance(self.run, Path) else self.run


class RunConfig(Section):
    task: str
    encoder: EncoderConfig
    words: WordsConfig = WordsConfig()
    transformer: TransformerConfig | None = None
    head: HeadConfig = HeadConfig()
    optimiser: OptimiserConfig = OptimiserConfig()
    distillation: DistillationConfig = DistillationConfig()
    teacher: TeacherConfig | None = None
    start: Path | None = None
    """A finished run of the same encoder, or of one that this one adds weights to. This run begins with its best
    weights, its head's too where the classes are the same. A word that it did not list keeps its initial vector."""
    alpha: float = 1.0
    max_tokens: int = Field(default=256, gt=0, le=2**15 - 1)
    train_rows: int | None = Field(default=None, gt=0)
    """Train on a random sample of this size, the same for every seed; on all examples where unset."""
    epochs: int = Field(default=10, gt=0)
    patience: int = Field(default=3, gt=0)
    """Training stops after this many epochs without a better dev score."""
    seed: Seed = 1
    licence: str = Field(min_length=1)
    """Licence of the trained weights; the card names those of the data."""
    device: Device = "cpu"

    @model_validator(mode="after")
    def _frozen_from_a_run(self) -> Self:
        if self.encoder.frozen and not self.start:
            raise ValueError("encoder.frozen needs start, the run whose encoder it keeps")
        if self.transformer and self.transformer.frozen and not self.encoder.frozen:
            raise ValueError("transformer.frozen needs encoder.frozen, what is above it")
        return self

    def encoder_keywords(self) -> dict[str, bool | int | float | str]:
        """The keywords that `models.registry.build` takes with the encoder's name."""
        dim = self.transformer.dim if self.transformer else self.words.dim
        return {"dim": dim, "max_tokens": self.max_tokens, **self.encoder.config}


def read(path: Path) -> RunConfig:
    """Read a run's TOML file. Raises ConfigError."""
    return validate(load(path), path)


def load(path: Path) -> dict[str, Any]:
    """The fields of a TOML file. Raises ConfigError."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(f"no configuration {path}") from error
    except OSError as error:
        raise ConfigError(f"cannot read the configuration {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not TOML: {error}") from error


def validate(fields: Any, origin: Path) -> RunConfig:
    """The configuration that a TOML file, a record or a checkpoint holds. Raises ConfigError naming `origin`."""
    try:
        found = RunConfig.model_validate(fields)
    except ValidationError as error:
        raise refused(error, origin) from error
    return _with_encoder(found, origin)


def _with_encoder(run: RunConfig, origin: Path) -> RunConfig:
    """With what `[head]` leaves out as in the encoder's paper.

    Raises ConfigError where there is no such encoder or it cannot be made, and for an unknown task.
    """
    # Here, because commands that serve import this module, and these need torch.
    import torch

    from heedful.models.registry import ENCODERS, build, head_sizes
    from heedful.training import tasks

    name = run.encoder.name
    try:
        with torch.device("meta"):  # no weights, and no random numbers drawn
            build(name, run.encoder_keywords())
    except (ValueError, RuntimeError) as error:  # torch's for a size that it cannot make
        field = "encoder.config" if name in ENCODERS else "encoder.name"
        raise ConfigError(f"{origin}: {field}: {error}") from error
    given = run.head.model_dump(exclude_unset=True)
    if given.keys() == HeadConfig.model_fields.keys():
        return run
    kind = tasks.get(run.task).kind
    if kind == "embedding":
        return run
    head = HeadConfig.model_validate(head_sizes(name, kind) | given)
    return run.model_copy(update={"head": head})


def refused(error: ValidationError, origin: Path) -> ConfigError:
    """The first fault with its field."""
    first = error.errors()[0]
    # Of a field that takes several types, pydantic adds what each is, in brackets.
    field = ".".join(str(part) for part in first["loc"] if "[" not in str(part))
    # The prefix is of an error that involves several fields, and names them.
    said = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        said += ": leave it out, or correct its name or section"
    return ConfigError(f"{origin}: {field}: {said}" if field else f"{origin}: {said}")

"""The configuration of a run: a TOML file, validated before anything is loaded."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from heedful.text.composition import LEAST_ROWS
from heedful.training.errors import ConfigError

CROSS_ENCODER = "cross-encoder"
Precision = Literal["float32", "bfloat16"]
Device = Literal["cpu", "cuda"]
Seed = Annotated[int, Field(ge=0, lt=2**32)]


CACHE = Path(".cache/parses")
"""The cache of parses and of teachers' vectors, in the working folder."""
VECTORS = "ms-san-nli"
"""The bundle whose word vectors `heedful fit` begins with."""


@dataclass(frozen=True, slots=True)
class Paths:
    """The files and folders that a run reads and writes."""

    run: Path
    data: Path
    parser: str | None  # None: words alone, for encoders that read no trees
    cache: Path
    config: Path


class Section(BaseModel):
    """The docstring below a field is its description in docs/configuration.md."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


class EncoderConfig(Section):
    """`[encoder]`: the model that makes a sentence vector of word vectors."""

    name: str
    """One of `heedful list --encoders`, or in a checkout `cross-encoder`: the transformer reads both texts of a pair
    together, and a linear layer answers. It is the teacher of others, and is never exported."""
    config: dict[str, bool | int | float | str] = Field(default_factory=dict)
    """The encoder's own keywords (`heedful list --encoders`, docs/models.md)."""


class WordsConfig(Section):
    """`[words]`: the vocabulary and its initial word vectors."""

    vectors: str = "wordbridge"
    """`wordbridge`, `minilm`, `mpnet`, `word2vec` (trained on the run's texts), or the path of a bundle, a sentence
    encoder or a GloVe file."""
    dim: int = Field(default=300, gt=0)
    """Features of a word vector."""
    init_rms: float = Field(default=1.0, gt=0)
    """Root mean square length of the initial vectors."""
    min_count: int = Field(default=2, ge=1)
    """A word without a vector must occur this often in the training texts; rarer ones are unknown."""
    background_min_count: int | None = Field(default=None, ge=1)
    """Also take words with a vector that occur this often in the task's background texts."""
    limit: int | None = Field(default=None, ge=1)
    """List at most so many words, the most frequent."""
    subword_rows: int = Field(default=0, ge=0, lt=2**31)
    """Rows of the table of subword features that unlisted words are composed from; 14336 is a good size. With 0 all
    unlisted words share one vector."""
    subword_dropout: float = Field(default=0.1, ge=0, lt=1)
    """Share of the listed words that training composes too, so that both readings of a word agree."""
    four_bits: bool = False
    """Round word vectors in training as `heedful export --storage small` stores them."""

    @field_validator("subword_rows")
    @classmethod
    def _none_or_enough(cls, rows: int) -> int:
        if 0 < rows < LEAST_ROWS:
            raise ValueError(f"give 0, or at least {LEAST_ROWS}; 14336 is a good size")
        return rows


class TransformerConfig(Section):
    """`[transformer]`: a pretrained Hugging Face model in place of the word table; `[words]` is then ignored."""

    name: str = "minilm"
    """`minilm`, `mpnet` (all-mpnet-base-v2; for a cross-encoder), or a folder with config.json, model.safetensors and
    tokenizer.json."""
    dim: int = Field(default=384, gt=0)
    """Features of its states."""
    lora_rank: int = Field(default=0, ge=0)
    """Train LoRA adapters of this rank in place of the layers' matrices; biases and norms are trained too, the
    embeddings of pieces are not. 0 trains the matrices themselves."""
    frozen_layers: int = Field(default=0, ge=0)
    """Number of lowest layers that are frozen, with the embeddings below them."""
    sentence: Literal["cls", "mean"] = "cls"
    """The sentence vector that the encoder or the linear layer reads: [CLS] (BERT), or the mean of all pieces
    (all-MiniLM-L6-v2 and others trained with mean pooling)."""
    dropout: float = Field(default=0.1, ge=0, lt=1)
    """Dropout of its states and its attention."""
    rate: float = Field(default=3e-5, gt=0)
    """Learning rate of its pretrained weights; of its top layer where layers have different rates."""
    layer_decay: float = Field(default=1.0, gt=0, le=1)
    """Each layer below learns at this share of the rate of the layer above it."""


class HeadConfig(Section):
    """`[head]`: a field that is left out has the value of the encoder's paper (`heedful list --encoders`)."""

    hidden: int = Field(default=300, gt=0)
    """Features of its hidden layers."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """Dropout before each of its layers."""


class OptimiserConfig(Section):
    """`[optimiser]`: how weights are updated. Word vectors always use Adam, of which torch has a sparse form."""

    name: Literal["adam", "adamw", "sgd"] = "adam"
    """SGD is LAMA's (rate 0.05). AdamW decays weights apart from the gradient."""
    momentum: float = Field(default=0.9, ge=0, lt=1)
    """For SGD only."""
    schedule: Literal["cosine", "halve"] = "cosine"
    """After the warm-up: a cosine to zero over all epochs, or halved after each epoch whose loss
    is not below the lowest so far (DSA halves after five of them, on SST after two)."""
    rate: float = Field(default=1e-3, gt=0)
    """Learning rate of all weights but word vectors and a transformer."""
    word_lr: float = Field(default=1e-3, gt=0)
    """Learning rate of the word vectors; their optimiser updates only the rows in a batch."""
    batch: int = Field(default=64, gt=0)
    """Examples of a step."""
    weight_decay: float = Field(default=0.0, ge=0)
    """L2 penalty in the loss, half of this times the squares of all weights but the word vectors', as in the papers.
    With AdamW each step subtracts this share of a weight, times the rate. Records from before 2026-11-23
    with Adam decayed the weights as AdamW does, which is weaker."""
    warmup: float = Field(default=0.05, ge=0, lt=1)
    """Share of all steps in which the rates rise."""
    clip: float = Field(default=5.0, gt=0)
    """Largest norm of the gradient."""
    precision: Precision = "float32"
    """Precision of the products in training (torch.autocast): processors with AMX multiply bfloat16 ten times
    as fast. Weights, dev scores and exported graphs are float32 in either case."""
    ema_decay: float = Field(default=0.0, ge=0, lt=1)
    """Decay of the moving average of the weights that is evaluated and exported; 0 turns it off.
    The first updates decay faster, so that the initial weights are soon forgotten."""


class DistillationConfig(Section):
    """`[distillation]`: the loss of an embedding model, which learns from a teacher's vectors."""

    teachers: tuple[str, ...] = Field(("minilm",), min_length=1, max_length=2)
    """The sentence encoders whose vectors are the targets: `minilm`, `mpnet`, the folder of another or its name on the
    hub. The vectors of a second one are turned into the axes of the first and added."""
    size: int = Field(default=384, gt=0)
    """Values of the vector: those of the first teacher's."""
    regression: float = Field(default=1.0, ge=0)
    """Weight of 1 - cosine between the model's vector and the teacher's."""
    ranking: float = Field(default=1.0, ge=0)
    """Weight of the divergence between the model's and the teacher's similarities in a batch."""
    temperature: float = Field(default=0.05, gt=0)
    """Divides the similarities of a batch before the softmax."""
    dimensions: tuple[Annotated[int, Field(gt=0)], ...] = (64, 128, 256)
    """Lengths of leading parts of the vector that are trained as vectors too, as the whole is."""
    hard_batch_size: int = Field(default=0, ge=0)
    """Draw sentences in groups of this size whose teacher's vectors are near each other; 0 draws each on its own."""


class PairsConfig(Section):
    """`[pairs]`: an embedding learns which texts belong together, and stays near to the vectors of `teachers`."""

    temperature: float = Field(default=0.05, gt=0)
    """Divides the cosines of a batch before the softmax."""


class TeacherConfig(Section):
    """`[teacher]`: finished runs with the same classes, whose predictions are targets along with the labels."""

    run: Path | Annotated[tuple[Path, ...], Field(min_length=1)]
    """The folder of a run or of a bundle over words, or several: the mean of their predictions."""
    weight: float = Field(default=0.5, gt=0, le=1)
    """Weight of the teacher's probabilities; the label has the rest."""
    min_teacher_label_prob: float = Field(default=0.0, ge=0, lt=1)
    """Where the teacher gives the label a lower probability than this, the label alone is the target."""

    @property
    def runs(self) -> tuple[Path, ...]:
        return (self.run,) if isinstance(self.run, Path) else self.run


Part = Literal["words", "pieces", "transformer", "encoder"]
"""What `freeze` can name."""


class RunConfig(Section):
    """Fields that stand before the first section."""

    task: str
    """The data to learn from: a name of docs/data.md."""
    encoder: EncoderConfig
    words: WordsConfig = WordsConfig()
    transformer: TransformerConfig | None = None
    head: HeadConfig = HeadConfig()
    optimiser: OptimiserConfig = OptimiserConfig()
    distillation: DistillationConfig = DistillationConfig()
    pairs: PairsConfig | None = None
    teacher: TeacherConfig | None = None
    init_from: Path | None = None
    """A finished run of the same encoder, or of one to which this encoder adds weights, or a bundle over words. This
    run begins with its best weights, its head's too where the classes are the same. A word that it did not list keeps
    its initial vector; a bundle with the same classes, and an embedding, lend their list of words too."""
    freeze: tuple[Part, ...] = ()
    """Parts that are not trained: `words` (their vectors), `pieces` (a transformer's table of pieces, half of MiniLM's
    weights), `transformer` (all of it), and `encoder`, which keeps the weights of `init_from`: then the head is
    trained, and where this encoder adds weights to that of `init_from`, they alone are, in the head too. With `encoder`
    and `transformer` texts are encoded without dropout."""
    alpha: float = 1.0
    """MS-SAN's alpha: how much distance counts."""
    max_tokens: int = Field(default=256, gt=0, le=2**15 - 1)
    """Words of a text that are read; of a cross-encoder, pieces of a text or pair."""
    extra_dev_tasks: tuple[str, ...] = ()
    """Tasks with the same labels whose dev scores are logged too."""
    train_rows: int | None = Field(default=None, gt=0)
    """Train on a random sample of this size, the same for every seed; on all examples where unset."""
    epochs: int = Field(default=10, gt=0)
    """Passes over the data at most."""
    patience: int = Field(default=3, gt=0)
    """Training stops after this many epochs without a better dev score."""
    seed: Seed = 1
    """Of initial weights, order and dropout."""
    licence: str = Field(min_length=1)
    """Licence of the trained weights; the card names those of the data."""
    device: Device = "cpu"
    """`cuda` trains on a GPU, as `--device cuda` does."""

    @model_validator(mode="after")
    def _frozen_parts_exist(self) -> Self:
        if self.encoder.name == CROSS_ENCODER and (not self.transformer or self.init_from):
            raise ValueError("a cross-encoder needs the section [transformer], and no init_from")
        if "encoder" in self.freeze and not self.init_from:
            raise ValueError("freeze: encoder needs init_from, the run whose encoder it keeps")
        for part, exists, instead in (
            ("words", not self.transformer, "transformer"),
            ("pieces", self.transformer, "words"),
            ("transformer", self.transformer, "words"),
        ):
            if part in self.freeze and not exists:
                raise ValueError(f"freeze: this run has no {part}: name {instead}")
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
    """The configuration in a TOML file, a record or a checkpoint. Raises ConfigError naming `origin`."""
    try:
        config = RunConfig.model_validate(fields)
    except ValidationError as error:
        raise first_fault(error, origin) from error
    return _with_head(config, origin)


def _with_head(run: RunConfig, origin: Path) -> RunConfig:
    """Complete `[head]` with the values of the encoder's paper.

    Raises ConfigError where there is no such encoder or it cannot be built, and for an unknown task.
    """
    # Imported here, because commands that serve import this module, and these need torch.
    import torch

    from heedful.models.registry import ENCODERS, build, head_sizes
    from heedful.training import tasks

    name = run.encoder.name
    if name == CROSS_ENCODER:
        return run
    try:
        with torch.device("meta"):  # no weights, and no random numbers drawn
            build(name, run.encoder_keywords())
    except (ValueError, RuntimeError) as error:  # torch's RuntimeError: a size that it cannot make
        field = "encoder.config" if name in ENCODERS else "encoder.name"
        raise ConfigError(f"{origin}: {field}: {error}") from error
    head_fields = run.head.model_dump(exclude_unset=True)
    if head_fields.keys() == HeadConfig.model_fields.keys():
        return run
    kind = tasks.get(run.task).kind
    if kind == "embedding":
        return run
    head = HeadConfig.model_validate(head_sizes(name, kind) | head_fields)
    return run.model_copy(update={"head": head})


def first_fault(error: ValidationError, origin: Path) -> ConfigError:
    """The error for the first fault, with its field."""
    first = error.errors()[0]
    # For a field of several types pydantic adds the type, in brackets.
    field = ".".join(str(part) for part in first["loc"] if "[" not in str(part))
    # pydantic's prefix of an error that a validator of ours raised.
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        message += ": leave it out, or correct its name or section"
    return ConfigError(f"{origin}: {field}: {message}" if field else f"{origin}: {message}")

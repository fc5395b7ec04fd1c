"""What a run is: a TOML file, checked whole before anything is loaded."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from heedful.training.errors import ConfigError

RENAMED = {
    "optimiser.word_rate": "optimiser.word_lr",
    "transformer.trained": 'transformer.finetune ("all", "layers" or "none")',
}
"""Fields that had another name in older configurations."""


@dataclass(frozen=True, slots=True)
class Paths:
    """Where a run reads and writes."""

    run: Path
    data: Path
    parser: str
    cache: Path
    config: Path


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class EncoderConfig(Section):
    """`config` holds the encoder's own keywords; `models.registry.build` checks them."""

    name: str
    config: dict[str, bool | int | float | str] = Field(default_factory=dict)


class WordsConfig(Section):
    """The vocabulary and the vectors its words begin with."""

    vectors: str = "wordbridge"
    """`wordbridge`, `minilm`, `word2vec` (trained on the run's own texts), or the path of a GloVe text file."""
    dim: int = Field(default=300, gt=0)
    scale: float = Field(default=1.0, gt=0)
    """Standard deviation of the vectors' values once loaded, times sqrt(dim): the usual length of a vector."""
    frozen: bool = False
    min_count: int = Field(default=2, ge=1)
    """A word without a vector must stand this often in the training texts; rarer ones are unknown."""
    background_min_count: int | None = Field(default=None, ge=1)
    """Take words with a vector from the task's background texts too, if they stand there this often."""


class TransformerConfig(Section):
    """A Hugging Face BertModel in the place of the word table: of `words` nothing is read then."""

    name: str = "minilm"
    """`minilm`, or a folder with config.json, model.safetensors and tokenizer.json."""
    dim: int = Field(default=384, gt=0)
    finetune: Literal["all", "layers", "none"] = "all"
    """`layers`: all but the table of its pieces, half of its weights, which costs the optimiser as much
    as all the rest."""
    frozen_layers: int = Field(default=0, ge=0)
    """So many of its layers, the lowest, keep their weights, as what stands below them does."""
    sentence: Literal["cls", "mean"] = "cls"
    """What stands for the whole sentence in its place of the encoder: [CLS] (BERT), or the mean of all
    pieces (all-MiniLM-L6-v2 and its like, which are trained to be pooled so)."""
    dropout: float = Field(default=0.1, ge=0, lt=1)
    """Of its states and its attention."""
    rate: float = Field(default=3e-5, gt=0)
    """Rate of its weights, which are trained already."""


class HeadConfig(Section):
    hidden: int = Field(default=300, gt=0)
    dropout: float = Field(default=0.0, ge=0, lt=1)


class OptimiserConfig(Section):
    """How the layers' weights move. The word vectors always move by Adam, of which torch has a sparse form."""

    name: Literal["adam", "adadelta", "sgd"] = "adam"
    """Adadelta is DiSAN's (rate 0.5) and DSA's on SST, SGD is LAMA's (rate 0.05)."""
    momentum: float = Field(default=0.9, ge=0, lt=1)
    """Of SGD alone."""
    schedule: Literal["cosine", "constant", "halve"] = "cosine"
    """After the warm-up: down to zero over all epochs, level, or half the rates after each epoch whose
    loss is no lower than the lowest before (DSA)."""
    rate: float = Field(default=1e-3, gt=0)
    word_lr: float = Field(default=1e-3, gt=0)
    """Rate of the word vectors, which have an optimiser of their own: only the rows of a batch move."""
    batch: int = Field(default=64, gt=0)
    weight_decay: float = Field(default=0.0, ge=0)
    warmup: float = Field(default=0.05, ge=0, lt=1)
    """Share of all steps."""
    clip: float = Field(default=5.0, gt=0)
    label_smoothing: float = Field(default=0.0, ge=0, lt=1)
    precision: Literal["float32", "bfloat16"] = "float32"
    """Of the layers' products while training (torch.autocast): processors with AMX multiply bfloat16 ten
    times as fast. The weights, dev and the exported graphs are float32 in either case."""
    average: float = Field(default=0.0, ge=0, lt=1)
    """Decay of the moving average of the weights that dev and export see; 0: the weights themselves.
    The first updates decay faster, so that the weights a run began with are soon forgotten."""


class DistillationConfig(Section):
    """How an embedding model follows its teacher: weights of the two parts of its loss."""

    regression: float = Field(default=1.0, ge=0)
    """Of 1 - cosine between the teacher's vector and the model's, taken through a linear layer."""
    relations: float = Field(default=10.0, ge=0)
    """Of the squared difference between the cosines of a batch's sentences, the model's and the teacher's."""


class TeacherConfig(Section):
    """A finished run of the same classes whose answers are learnt from, beside the labels."""

    run: Path
    weight: float = Field(default=0.5, gt=0, le=1)
    """Of the teacher's probabilities; the label has the rest."""


class RunConfig(Section):
    task: str
    encoder: EncoderConfig
    words: WordsConfig = WordsConfig()
    transformer: TransformerConfig | None = None
    head: HeadConfig = HeadConfig()
    optimiser: OptimiserConfig = OptimiserConfig()
    distillation: DistillationConfig = DistillationConfig()
    teacher: TeacherConfig | None = None
    alpha: float = 1.0
    max_tokens: int = Field(default=256, gt=0)
    train_rows: int | None = Field(default=None, gt=0)
    """Train on so many examples, drawn at random, the same ones for every seed; all where unset."""
    epochs: int = Field(default=10, gt=0)
    patience: int = Field(default=3, gt=0)
    """Epochs without a better dev score after which training stops."""
    seed: int = 1
    licence: str
    """Of the trained weights; the card names those of the data."""
    device: Literal["cpu", "cuda"] = "cpu"

    def encoder_keywords(self) -> dict[str, bool | int | float | str]:
        """What `models.registry.build` is called with, beside the encoder's name."""
        dim = self.transformer.dim if self.transformer else self.words.dim
        return {"dim": dim, "max_tokens": self.max_tokens, **self.encoder.config}


def read(path: Path) -> RunConfig:
    """Read a run's TOML file. Raises ConfigError."""
    try:
        fields = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(f"no configuration {path}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not TOML: {error}") from error
    return validate(fields, path)


def validate(fields: Any, origin: Path) -> RunConfig:
    """The configuration that a TOML file, a record or a checkpoint holds. Raises ConfigError naming `origin`."""
    try:
        return RunConfig.model_validate(fields)
    except ValidationError as error:
        raise refused(error, origin) from error


def refused(error: ValidationError, origin: Path) -> ConfigError:
    """The first fault with its field and, where that has another name now, the name."""
    first = error.errors()[0]
    field = ".".join(map(str, first["loc"]))
    if first["type"] == "extra_forbidden" and field in RENAMED:
        return ConfigError(f"{origin}: {field} is now called {RENAMED[field]}")
    return ConfigError(f"{origin}: {field}: {first['msg']}")

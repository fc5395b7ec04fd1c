"""all-MiniLM-L6-v2 fine-tuned as a classifier of texts or pairs: the teacher of the small encoders.

A pair is read jointly, `[CLS] first [SEP] second [SEP]` (a cross-encoder: each word of one sentence sees the
words of the other), so it answers better than any encoder of single sentences. It is never shipped.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import torch
from pydantic import Field, ValidationError
from rich.progress import track
from torch import Tensor, nn

from heedful.text.arrays import Floats, Ints
from heedful.text.batch import plan
from heedful.training import checkpoint, metrics, minilm
from heedful.training.config import Device, Precision, Section, Seed, TeacherConfig, refused
from heedful.training.data import cells
from heedful.training.restore import read_record
from heedful.training.tasks.base import Example
from heedful.training.transformer import ATTENTION

KIND: Literal["teacher"] = "teacher"
CELLS: dict[Device, int] = {"cpu": 6_000, "cuda": 200_000}
"""Pieces of a batch that is only read, padding counted."""


class CrossEncoderConfig(Section):
    """A TOML file of `heedful train` whose `kind` is teacher."""

    kind: Literal["teacher"] = KIND
    task: str
    epochs: int = Field(default=2, gt=0)
    batch: int = Field(default=64, gt=0)
    rate: float = Field(default=1e-4, gt=0)
    """Learning rate of the top layer of the transformer."""
    layer_decay: float = Field(default=0.9, gt=0, le=1)
    """Each layer below learns at this share of the rate of the one above it."""
    head_rate: float = Field(default=1e-3, gt=0)
    weight_decay: float = Field(default=0.01, ge=0)
    warmup: float = Field(default=0.05, ge=0, lt=1)
    schedule: Literal["cosine", "constant"] = "cosine"
    average: float = Field(default=0.998, ge=0, lt=1)
    """Decay of the moving average of the weights, which is what is evaluated and kept."""
    max_pieces: int = Field(default=128, gt=0, le=512)
    """Longer texts are cut; of a pair the longer text first."""
    clip: float = Field(default=1.0, gt=0)
    precision: Precision = "bfloat16"
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """Dropout of the transformer's states and its attention."""
    teacher: TeacherConfig | None = None
    device: Device = "cpu"
    seed: Seed = 1
    also: tuple[str, ...] = ()
    """Tasks with the same labels whose dev scores are logged too."""


class CrossEncoder(nn.Module):
    """Pieces -> logits: the mean of the last hidden states, and a linear layer."""

    def __init__(self, classes: int, *, dropout: float = 0.0, device: Device = "cpu") -> None:
        super().__init__()
        loaded = minilm.load()
        self.encoder: Any = loaded.model
        self.encoder.set_attn_implementation(ATTENTION[device])
        for module in self.encoder.modules():
            if isinstance(module, nn.Dropout):
                module.p = dropout
        self.encoder.embeddings.word_embeddings.requires_grad_(False)  # half of the weights
        self.head = nn.Linear(self.encoder.config.hidden_size, classes)
        self.to(device)

    def forward(self, ids: Tensor, types: Tensor, mask: Tensor) -> Tensor:
        """Three of (B, L) -> (B, classes)."""
        states = self.encoder(
            input_ids=ids, token_type_ids=types, attention_mask=mask
        ).last_hidden_state
        weights = mask[:, :, None].to(states.dtype)
        logits: Tensor = self.head((states * weights).sum(1) / weights.sum(1))
        return logits

    def groups(self, config: CrossEncoderConfig) -> list[dict[str, Any]]:
        """Parameters with their learning rates: lower layers learn more slowly."""
        layers = list(self.encoder.encoder.layer)
        parts = [self.encoder.embeddings, *layers]
        rates = [config.rate * config.layer_decay**i for i in reversed(range(len(parts)))]
        found: list[dict[str, Any]] = [
            {"params": [p for p in part.parameters() if p.requires_grad], "lr": rate}
            for part, rate in zip(parts, rates, strict=True)
        ]
        return [*found, {"params": list(self.head.parameters()), "lr": config.head_rate}]


@dataclass(frozen=True, slots=True)
class Pieces:
    """The word pieces of N texts or pairs: `ids` and `types` concatenated, example i at `bounds[i]`."""

    ids: npt.NDArray[np.int32]
    types: npt.NDArray[np.int8]
    bounds: Ints

    @classmethod
    def of(cls, examples: Sequence[tuple[str, ...]], max_pieces: int) -> Self:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(minilm.folder() / "tokenizer.json"))
        tokenizer.no_padding()
        tokenizer.enable_truncation(max_pieces)
        found = tokenizer.encode_batch([one if len(one) > 1 else one[0] for one in examples])
        lengths = [len(one.ids) for one in found]
        return cls(
            np.concatenate([np.array(one.ids, np.int32) for one in found]),
            np.concatenate([np.array(one.type_ids, np.int8) for one in found]),
            np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        )

    @property
    def lengths(self) -> Ints:
        return np.diff(self.bounds)

    def collate(self, group: Ints, device: Device = "cpu") -> tuple[Tensor, Tensor, Tensor]:
        """Ids, types and mask (B, L) of some examples."""
        found, mask = cells(self.bounds, group)
        ids, types = np.zeros((2, *mask.shape), np.int64)
        ids[mask], types[mask] = self.ids[found], self.types[found]
        first, second, third = (torch.from_numpy(one).to(device) for one in (ids, types, mask))
        return first, second, third.long()


def validate(fields: Any, origin: Path) -> CrossEncoderConfig:
    """The configuration that a TOML file holds. Raises ConfigError naming the file and the field."""
    try:
        return CrossEncoderConfig.model_validate(fields)
    except ValidationError as error:
        raise refused(error, origin) from error


def load(folder: Path) -> tuple[CrossEncoder, CrossEncoderConfig]:
    """The best weights of a finished run, to be read only. Raises RunMissing."""
    record = read_record(folder)
    config = CrossEncoderConfig.model_validate(record["config"])
    device: Device = "cuda" if torch.cuda.is_available() else "cpu"
    model = CrossEncoder(len(record["labels"]), device=device)
    try:
        model.load_state_dict(checkpoint.best(folder))
    except RuntimeError as error:
        raise checkpoint.mixed(folder, error) from error
    return model.eval(), config


def probabilities(folder: Path, texts: Sequence[tuple[str, ...]]) -> Floats:
    """(N, classes) the run's answers to texts or pairs, on a GPU where there is one. Raises RunMissing."""
    model, config = load(folder)
    return answer(model, texts, config)


def answer(
    model: CrossEncoder, texts: Sequence[tuple[str, ...]], config: CrossEncoderConfig
) -> Floats:
    """(N, classes) probabilities."""
    device: Device = "cuda" if model.head.weight.is_cuda else "cpu"
    pieces = Pieces.of(texts, config.max_pieces)
    found = np.empty((len(texts), model.head.out_features), np.float32)
    model.eval()
    half = config.precision == "bfloat16"
    groups = [np.array(one) for one in plan(pieces.lengths.tolist(), CELLS[device])]
    with torch.inference_mode(), torch.autocast(device, torch.bfloat16, enabled=half):
        for group in track(groups, "answers", transient=True):
            logits = model(*pieces.collate(group, device))
            found[group] = logits.float().softmax(-1).cpu().numpy()
    return found


def accuracy(model: CrossEncoder, examples: Sequence[Example], config: CrossEncoderConfig) -> float:
    found = answer(model, [one.texts for one in examples], config).argmax(1)
    return metrics.accuracy(found, np.array([one.label for one in examples]))

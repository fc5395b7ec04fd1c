"""all-MiniLM-L6-v2 fine-tuned as a classifier of texts or pairs: the teacher of the small encoders.

A pair is read jointly, `[CLS] first [SEP] second [SEP]` (a cross-encoder: each word of one sentence sees the
words of the other), so it answers better than any encoder of single sentences. It is never shipped.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import torch
from pydantic import Field, ValidationError
from rich.console import Console
from rich.progress import track
from torch import Tensor, nn
from torch.nn import functional

from heedful.text.atomic import write_json
from heedful.training import checkpoint, minilm
from heedful.training.checkpoint import Progress
from heedful.training.config import Section, refused
from heedful.training.data import Ints, sorted_batches
from heedful.training.optimise import AVERAGE_EVERY, make_schedule, moving_average
from heedful.training.restore import read_record
from heedful.training.source_commit import source_commit
from heedful.training.tasks import get as get_task
from heedful.training.tasks.base import Example, Source, Task

Floats = npt.NDArray[np.float32]

KIND: Literal["teacher"] = "teacher"
CELLS = 6_000
"""Pieces of a batch that is only read, padding counted."""


class FineTuneConfig(Section):
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
    precision: Literal["float32", "bfloat16"] = "bfloat16"
    seed: int = 1
    also: tuple[str, ...] = ()
    """Tasks with the same labels whose dev scores are logged too."""


class FineTuned(nn.Module):
    """Pieces -> logits: the mean of the last hidden states, and a linear layer."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        loaded = minilm.load()
        self.encoder: Any = loaded.model
        self.encoder.set_attn_implementation("eager")  # faster than the fused one on a CPU
        for module in self.encoder.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.0
        self.encoder.embeddings.word_embeddings.requires_grad_(False)  # half of the weights
        self.head = nn.Linear(self.encoder.config.hidden_size, classes)

    def forward(self, ids: Tensor, types: Tensor, mask: Tensor) -> Tensor:
        """Three of (B, L) -> (B, classes)."""
        states = self.encoder(
            input_ids=ids, token_type_ids=types, attention_mask=mask
        ).last_hidden_state
        weights = mask[:, :, None].to(states.dtype)
        logits: Tensor = self.head((states * weights).sum(1) / weights.sum(1))
        return logits

    def groups(self, config: FineTuneConfig) -> list[dict[str, Any]]:
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

    def collate(self, group: Ints) -> tuple[Tensor, Tensor, Tensor]:
        """Ids, types and mask (B, L) of some examples."""
        longest = int(self.lengths[group].max())
        ids, types, mask = (np.zeros((len(group), longest), np.int64) for _ in range(3))
        for row, i in enumerate(group):
            span = slice(self.bounds[i], self.bounds[i + 1])
            size = span.stop - span.start
            ids[row, :size], types[row, :size] = self.ids[span], self.types[span]
            mask[row, :size] = 1
        return torch.from_numpy(ids), torch.from_numpy(types), torch.from_numpy(mask)


def validate(fields: Any, origin: Path) -> FineTuneConfig:
    """The configuration that a TOML file holds. Raises ConfigError naming the file and the field."""
    try:
        return FineTuneConfig.model_validate(fields)
    except ValidationError as error:
        raise refused(error, origin) from error


def fine_tune(
    config: FineTuneConfig, folder: Path, data: Path, *, resume: bool, console: Console
) -> dict[str, Any]:
    """Train to the last epoch; returns the record, with the dev accuracy of every epoch.

    Raises ConfigError where the folder holds another run, DataMissing.
    """
    task = get_task(config.task)
    commit = source_commit()
    examples = [one for source in task.train for one in source.read(data)]
    pieces = Pieces.of([one.texts for one in examples], config.max_pieces)
    targets = torch.tensor([int(one.label) for one in examples])
    devs = {name: get_task(name).dev.read(data) for name in (config.task, *config.also)}

    torch.manual_seed(config.seed)
    model = FineTuned(len(task.labels))
    optimiser = torch.optim.AdamW(model.groups(config), weight_decay=config.weight_decay)
    steps = config.epochs * -(-len(examples) // config.batch)
    schedule = make_schedule(optimiser, config.schedule, config.warmup, steps)
    average = moving_average(model, config.average)
    kept: FineTuned = average.module if average else model  # type: ignore[assignment]
    parts: dict[str, checkpoint.Stateful] = {"model": model, "optimiser": optimiser}
    parts |= {"schedule": schedule} | ({"average": average} if average else {})
    state = checkpoint.last_state(folder, config, validate, resume=resume)
    progress = checkpoint.restore(state, parts) if state else Progress()
    console.print(f"{task.name}: {len(examples)} examples, from epoch {progress.epoch + 1}")

    while progress.epoch < config.epochs:
        epoch = progress.epoch + 1
        groups = _shuffled(pieces, config, epoch)
        model.train()
        total = 0.0
        for step, group in enumerate(track(groups, f"epoch {epoch}", transient=True)):
            with torch.autocast("cpu", torch.bfloat16, enabled=config.precision == "bfloat16"):
                logits = model(*pieces.collate(group))
            loss = functional.cross_entropy(logits.float(), targets[group])
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), config.clip)
            optimiser.step()
            schedule.step()
            if average and step % AVERAGE_EVERY == 0:
                average.update_parameters(model)
            total += loss.item() * len(group)
            if step % 200 == 0:
                console.print(f"  step {step} of {len(groups)}: loss {loss.item():.3f}")
        scores = {name: _accuracy(kept, found, config) for name, found in devs.items()}
        progress = progress.after_epoch(total / len(examples), scores[config.task])
        if progress.best_epoch == epoch:
            checkpoint.save(folder / checkpoint.BEST, kept.state_dict())
        checkpoint.save_last(folder, parts, progress, config)
        checkpoint.log(folder, {"epoch": epoch, "loss": total / len(examples), **scores})
        console.print(f"epoch {epoch}: loss {total / len(examples):.4f}, dev {scores}")

    record = _record(config, task, commit, progress.best_score)
    write_json(folder / checkpoint.RECORD, record)
    return record


def _record(config: FineTuneConfig, task: Task, commit: str, dev: float) -> dict[str, Any]:
    return {
        "config": config.model_dump(mode="json"),
        "labels": task.labels,
        "commit": commit,
        "dev": dev,
        "data": [_card(one) for one in task.train],
    }


def _shuffled(pieces: Pieces, config: FineTuneConfig, epoch: int) -> list[Ints]:
    """The epoch's batches, each of examples of about one length."""
    rng = np.random.default_rng([config.seed, epoch])
    groups = sorted_batches(rng.permutation(len(pieces.lengths)), pieces.lengths, config.batch)
    rng.shuffle(groups)
    return groups


def load(folder: Path) -> tuple[FineTuned, FineTuneConfig]:
    """The best weights of a finished run, to be read only. Raises RunMissing."""
    record = read_record(folder)
    model = FineTuned(len(record["labels"]))
    model.load_state_dict(checkpoint.load(folder / checkpoint.BEST))
    return model.eval(), FineTuneConfig.model_validate(record["config"])


def probabilities(folder: Path, texts: Sequence[tuple[str, ...]]) -> Floats:
    """(N, classes) the run's answers to texts or pairs. Raises RunMissing."""
    model, config = load(folder)
    return answer(model, texts, config)


def answer(model: FineTuned, texts: Sequence[tuple[str, ...]], config: FineTuneConfig) -> Floats:
    """(N, classes) probabilities."""
    pieces = Pieces.of(texts, config.max_pieces)
    found = np.empty((len(texts), model.head.out_features), np.float32)
    model.eval()
    half = config.precision == "bfloat16"
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=half):
        for group in track(list(_by_length(pieces.lengths)), "answers", transient=True):
            found[group] = model(*pieces.collate(group)).float().softmax(-1).numpy()
    return found


def _accuracy(model: FineTuned, examples: Sequence[Example], config: FineTuneConfig) -> float:
    found = answer(model, [one.texts for one in examples], config).argmax(1)
    return float((found == np.array([one.label for one in examples])).mean())


def _by_length(lengths: Ints) -> Iterator[Ints]:
    """Groups of similar length whose padded size is at most CELLS."""
    order = np.argsort(lengths, kind="stable")[::-1]
    start = 0
    while start < len(order):
        size = max(1, CELLS // int(lengths[order[start]]))
        yield order[start : start + size]
        start += size


def _card(source: Source) -> dict[str, str]:
    return {"name": source.name, "licence": source.licence, "note": source.note}

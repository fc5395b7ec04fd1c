"""A pretrained transformer fine-tuned as a classifier of texts or pairs: the teacher of the small encoders.

A pair is read jointly, `[CLS] first [SEP] second [SEP]` (a cross-encoder: each word of one sentence sees the
words of the other), so it answers better than any encoder of single sentences. It is never shipped:
`heedful train` knows it in a checkout.
"""

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from rich.progress import track
from torch import Tensor, nn

from heedful.text.arrays import Floats, Ints
from heedful.text.kinds import RELATEDNESS_LEVELS
from heedful.training import checkpoint, distillation, setup, transformer
from heedful.training.config import CROSS_ENCODER, Device, RunConfig, TransformerConfig, validate
from heedful.training.data import labels, padded_index, sorted_batches
from heedful.training.errors import ConfigError, RunMissing
from heedful.training.model import ParameterGroups, Trainable
from heedful.training.restore import read_record
from tools.batches import plan

CELLS: dict[Device, int] = {"cpu": 6_000, "cuda": 200_000}
"""Pieces of a batch for inference, padding counted."""


class CrossEncoder(Trainable):
    """Pieces -> logits: a vector of the last hidden states, and a linear layer."""

    def __init__(self, config: RunConfig, classes: int) -> None:
        """Raises ConfigError where the section [transformer] names no model that can be loaded."""
        super().__init__()
        section = config.transformer
        assert section is not None, "config.validate requires it"
        self.sentence = section.sentence
        self.in_half = config.optimiser.precision == "bfloat16"
        self.encoder: Any = transformer.load_model(section, config.device)
        if "pieces" in config.freeze:
            self.encoder.embeddings.word_embeddings.requires_grad_(False)
        self.head = nn.Linear(self.encoder.config.hidden_size, classes)
        self.reader = Reader.of(transformer.folder(section), config.max_tokens, self.encoder)
        self.to(config.device)

    def forward(self, batch: list[Tensor]) -> Tensor:
        """Ids, mask and, where the transformer has them, types, (B, L) each -> (B, classes)."""
        device = self.head.weight.device
        ids, mask, *types = (tensor.to(device) for tensor in batch)
        type_ids = {"token_type_ids": types[0]} if types else {}
        with torch.autocast(device.type, torch.bfloat16, enabled=self.in_half):
            states = self.encoder(input_ids=ids, attention_mask=mask, **type_ids).last_hidden_state
            weights = mask[:, :, None].to(states.dtype)
            mean = (states * weights).sum(1) / weights.sum(1)
            logits: Tensor = self.head(states[:, 0] if self.sentence == "cls" else mean)
        return logits.float()

    def experts(self, batch: list[Tensor]) -> tuple[Tensor, ...]:
        return (self(batch),)

    def trained_state_dict(self) -> dict[str, Tensor]:
        return self.state_dict()

    def encoder_parameters(self) -> Iterator[nn.Parameter]:
        parameters: Iterator[nn.Parameter] = self.encoder.parameters()
        return parameters

    def parameter_groups(self, section: TransformerConfig | None) -> ParameterGroups:
        assert section is not None
        head = {"params": list(self.head.parameters())}
        return [*transformer.layer_groups(self.encoder, section), head], []


@dataclass(frozen=True, slots=True)
class JointExamples:
    """The pieces of N texts or pairs, concatenated, example i at `bounds[i]:bounds[i + 1]`, and targets (N, ..)."""

    ids: npt.NDArray[np.int32]
    types: npt.NDArray[np.int8] | None
    bounds: Ints
    targets: npt.NDArray[Any]
    padding: int
    cells: int
    """Pieces of a batch in order of length."""

    def __len__(self) -> int:
        return len(self.targets)

    def steps(self, size: int) -> int:
        return -(-len(self) // size)

    def batches(
        self, size: int, rng: np.random.Generator | None
    ) -> Iterator[tuple[list[Tensor], npt.NDArray[Any]]]:
        """Batches as of `Examples.batches`; without `rng` they have about `cells` pieces, whatever `size` is."""
        lengths = np.diff(self.bounds)
        if rng is None:
            groups = [np.array(rows) for rows in plan(lengths.tolist(), self.cells)]
        else:
            groups = sorted_batches(rng.permutation(len(self)), lengths, size)
            rng.shuffle(groups)
        for group in groups:
            yield self._collate(group), self.targets[group]

    def _collate(self, group: Ints) -> list[Tensor]:
        positions, mask = padded_index(self.bounds, group)
        ids = np.full(mask.shape, self.padding, np.int64)
        ids[mask] = self.ids[positions]
        arrays = [ids, mask.astype(np.int64)]
        if self.types is not None:
            types = np.zeros(mask.shape, np.int64)
            types[mask] = self.types[positions]
            arrays.append(types)
        return [torch.from_numpy(array) for array in arrays]


@dataclass(frozen=True, slots=True)
class Reader:
    """Texts and pairs -> pieces; a pair that is too long loses pieces of its longer text first."""

    tokenizer: Any
    padding: int
    has_types: bool
    cells: int

    @classmethod
    def of(cls, folder: Path, longest: int, model: Any) -> "Reader":
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        tokenizer.no_padding()
        tokenizer.enable_truncation(min(longest, model.config.max_position_embeddings - 2))
        has_types = "token_type_ids" in inspect.signature(model.forward).parameters
        device: Device = "cuda" if model.device.type == "cuda" else "cpu"
        return cls(tokenizer, model.config.pad_token_id, has_types, CELLS[device])

    @property
    def pieces(self) -> int:
        count: int = self.tokenizer.get_vocab_size()
        return count

    def read(self, examples: Sequence[tuple[str, ...]], targets: npt.NDArray[Any]) -> JointExamples:
        inputs = [texts if len(texts) > 1 else texts[0] for texts in examples]
        encodings = self.tokenizer.encode_batch(inputs)
        lengths = [len(encoding.ids) for encoding in encodings]
        types = [np.array(encoding.type_ids, np.int8) for encoding in encodings]
        return JointExamples(
            np.concatenate([np.array(encoding.ids, np.int32) for encoding in encodings]),
            np.concatenate(types) if self.has_types else None,
            np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            targets,
            self.padding,
            self.cells,
        )


def load(folder: Path, device: Device = "cpu") -> CrossEncoder:
    """The best model of a finished run, in evaluation mode. Raises RunMissing, RunDamaged."""
    record = read_record(folder)
    config = validate(record["config"], folder / checkpoint.RECORD)
    if config.encoder.name != CROSS_ENCODER:
        raise RunMissing(f"{folder} is the run of an encoder: name the run of a cross-encoder")
    classes = RELATEDNESS_LEVELS if record["kind"] == "relatedness" else len(record["labels"])
    model = CrossEncoder(config.model_copy(update={"device": device}), classes)
    try:
        model.load_state_dict(checkpoint.best(folder))
    except RuntimeError as error:
        raise checkpoint.weights_mismatch(folder, error) from error
    return model.eval()


def probabilities(folder: Path, texts: Sequence[tuple[str, ...]], device: Device = "cpu") -> Floats:
    """(N, classes) the run's answers to texts or pairs. Raises RunMissing, RunDamaged."""
    model = load(folder, device)
    answers = np.empty((len(texts), model.head.out_features), np.float32)
    batches = model.reader.read(texts, np.arange(len(texts))).batches(1, None)
    with torch.inference_mode():
        for batch, places in track(batches, "answers", transient=True):
            answers[places] = model(batch).softmax(-1).cpu().numpy()
    return answers


def set_up(data: setup.RunData) -> setup.Setup:
    """The model and the examples of a run. Raises ConfigError for a task without classes."""
    task = data.task
    if task.kind == "embedding":
        raise ConfigError(f"{data.paths.config}: task: {task.name} has no classes: name another")
    classes = RELATEDNESS_LEVELS if task.kind == "relatedness" else len(task.labels)
    model = CrossEncoder(data.config, classes)
    read = model.reader.read
    return setup.Setup(
        model=model,
        objective=data.objective,
        train=read(
            [example.texts for example in data.examples], data.objective.targets(data.examples)
        ),
        dev={
            name: read([example.texts for example in examples], labels(examples))
            for name, examples in data.devs.items()
        },
        learned=data.learned,
        parser={},
        reads=f"{model.reader.pieces} pieces",
    )


setup.SETUPS[CROSS_ENCODER] = set_up
distillation.PREDICTORS[CROSS_ENCODER] = probabilities

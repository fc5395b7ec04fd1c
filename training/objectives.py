"""The objective of each kind of task: targets, loss, and the answer that is scored."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from heedful.models.heads import expected_score
from heedful.text.arrays import Floats
from heedful.text.batch import Batch
from heedful.text.kinds import RELATEDNESS_LEVELS, Kind
from heedful.training import distillation, teacher_vectors
from heedful.training.config import Device, DistillationConfig, RunConfig, TeacherConfig
from heedful.training.data import Batches, labels
from heedful.training.errors import ConfigError, RunMissing
from heedful.training.metrics import dev_metric
from heedful.training.model import Trainable, TrainingModel
from heedful.training.paired import Pairs
from heedful.training.restore import require_finished
from heedful.training.restore_bundle import is_bundle
from heedful.training.tasks.base import UNLABELLED, Example


class Objective(Protocol):
    """The targets, the loss and the answer of a kind of task."""

    def targets(self, examples: Sequence[Example]) -> npt.NDArray[Any]:
        """(N, ..) the targets of the loss."""

    def loss(self, model: Any, sides: list[Any], targets: Tensor) -> Tensor:
        """The mean over a batch, ()."""

    def answer(self, model: Any, sides: list[Any]) -> Tensor:
        """(B,) the answers that the kind's metrics compare with the labels."""


class Classes:
    """Cross-entropy; the answer is the most likely class."""

    def targets(self, examples: Sequence[Example]) -> npt.NDArray[Any]:
        classes = labels(examples).astype(np.int64)
        if (classes == UNLABELLED).any():
            raise ConfigError("task: some of its examples have no label: name a run in [teacher]")
        return classes

    def loss(self, model: Trainable, sides: list[Any], targets: Tensor) -> Tensor:
        losses = [functional.cross_entropy(logits, targets) for logits in model.experts(sides)]
        return torch.stack(losses).sum()

    def answer(self, model: Trainable, sides: list[Any]) -> Tensor:
        best: Tensor = model(sides).argmax(-1)
        return best


@dataclass(frozen=True, slots=True)
class TaughtClasses(Classes):
    """Cross-entropy with a mixture of the label, if there is one, and a teacher's probabilities."""

    teacher: TeacherConfig
    classes: int
    pipeline: str | None
    cache: Path
    device: Device

    def targets(self, examples: Sequence[Example]) -> npt.NDArray[Any]:
        doubtful = [i for i, example in enumerate(examples) if not example.trusted]
        truth = labels(examples)
        one_hot = np.eye(self.classes, dtype=np.float32)[truth.astype(np.int64)]
        answers = one_hot.copy()
        questions = [examples[i] for i in doubtful]
        predictions = [
            distillation.probabilities(
                run,
                questions,
                classes=self.classes,
                pipeline=self.pipeline,
                cache=self.cache,
                device=self.device,
            )
            for run in self.teacher.runs
        ]
        answers[doubtful] = np.mean(predictions, axis=0)
        label_only = (answers * one_hot).sum(1) < self.teacher.min_teacher_label_prob
        weight = np.where(label_only, 0, self.teacher.weight).astype(np.float32)
        weight[truth == UNLABELLED] = 1
        mixture: Floats = one_hot + weight[:, None] * (answers - one_hot)
        return mixture


class Relatedness:
    """Scores from 1 to 5 (Tai et al. 2015, section 4.2): KL divergence from soft targets, eq. (16)."""

    def targets(self, examples: Sequence[Example]) -> npt.NDArray[Any]:
        return soft_targets(labels(examples))

    def loss(self, model: Trainable, sides: list[Any], targets: Tensor) -> Tensor:
        return functional.kl_div(model(sides).log_softmax(-1), targets, reduction="batchmean")

    def answer(self, model: Trainable, sides: list[Any]) -> Tensor:
        return expected_score(model(sides))


@dataclass(frozen=True, slots=True)
class Distillation:
    """Sentence vectors that follow a teacher's in its axes, or two teachers'; the answer is the cosine of a pair.

    A vector of the model can therefore be compared with a vector of the teacher (LEAF, Vujanic and Rueckstiess 2025).
    Leading parts of a vector are trained as vectors too (Matryoshka, Kusupati et al. 2022).
    """

    weights: DistillationConfig
    cache: Path
    device: str

    def targets(self, examples: Sequence[Example]) -> npt.NDArray[Any]:
        texts = [example.texts[0] for example in examples]
        return teacher_vectors.targets(self.weights.teachers, texts, self.cache, self.device)

    def loss(self, model: TrainingModel, sides: list[Batch], targets: Tensor) -> Tensor:
        vectors, targets = model.encode(sides[0]).float(), targets.float()
        losses = []
        for size in (*self.weights.dimensions, targets.shape[1]):
            part = vectors[:, :size]
            regression = 1 - functional.cosine_similarity(part, targets[:, :size])
            losses.append(self.weights.regression * regression.mean())
            if self.weights.ranking:
                losses[-1] = losses[-1] + self.weights.ranking * self._ranking(part, targets)
        return torch.stack(losses).mean()

    def _ranking(self, vectors: Tensor, targets: Tensor) -> Tensor:
        """The Kullback-Leibler divergence of a batch's similarities from those of the targets, ()."""
        student, teacher = (cosines(side) / self.weights.temperature for side in (vectors, targets))
        student, teacher = student.log_softmax(-1), teacher.softmax(-1)
        return functional.kl_div(student, teacher, reduction="batchmean")

    def answer(self, model: TrainingModel, sides: list[Batch]) -> Tensor:
        first, second = map(model.encode, sides)
        return functional.cosine_similarity(first, second)


def cosines(vectors: Tensor) -> Tensor:
    """(B, D) -> (B, B - 1): the cosines of each row with every other one."""
    unit = functional.normalize(vectors, dim=-1)
    others = ~torch.eye(len(unit), dtype=torch.bool, device=unit.device)
    return (unit @ unit.T)[others].view(len(unit), -1)


def soft_targets(scores: npt.NDArray[Any]) -> Floats:
    """Scores y in [1, 5] (N,) -> (N, 5) weights on floor(y) and floor(y) + 1 whose mean is y.

    Tai et al. 2015, eq. (15). Raises ValueError for a score outside.
    """
    if not ((scores >= 1) & (scores <= RELATEDNESS_LEVELS)).all():
        raise ValueError(f"a relatedness score lies between 1 and {RELATEDNESS_LEVELS}")
    distance = np.abs(scores[:, None] - np.arange(1, RELATEDNESS_LEVELS + 1))
    weights: Floats = np.maximum(0, 1 - distance).astype(np.float32)
    return weights


def make_objective(
    kind: Kind, config: RunConfig, *, classes: int, pipeline: str | None, cache: Path
) -> Objective:
    """The objective of a kind. `cache` holds the teacher's answers, `pipeline` parses the texts it reads.

    Raises, before minutes of parsing, RunMissing where the teacher has not been trained, and ConfigError for a section
    that the kind does not use.
    """
    if kind in ("relatedness", "embedding") and config.teacher:
        raise ConfigError(f"teacher is for classes: leave it out for a task of {kind}")
    if kind == "relatedness":
        return Relatedness()
    if config.pairs:
        return Pairs(config.pairs, config.distillation, cache, config.device)
    if kind == "embedding":
        return Distillation(config.distillation, cache, config.device)
    return make_classes(
        config.teacher, classes, pipeline=pipeline, cache=cache, device=config.device
    )


def make_classes(
    teacher: TeacherConfig | None,
    classes: int,
    *,
    pipeline: str | None,
    cache: Path,
    device: Device,
) -> Classes:
    """The objective of a classifier, taught by a teacher or not. Raises RunMissing where it has not been trained."""
    if teacher is None:
        return Classes()
    for run in teacher.runs:
        if is_bundle(run):
            continue
        try:
            require_finished(run)
        except RunMissing as error:
            raise RunMissing(f"teacher.run: {error}") from error
    return TaughtClasses(teacher, classes, pipeline, cache, device)


def dev_score(objective: Objective, kind: Kind, model: Trainable, examples: Batches) -> float:
    """The kind's dev metric on examples with labels as targets."""
    model.eval()
    answers, labels = [], []
    with torch.inference_mode():
        for sides, targets in examples.batches(256, None):
            answers.append(objective.answer(model, sides).cpu().numpy())
            labels.append(targets)
    _, metric = dev_metric(kind)
    return metric(np.concatenate(answers), np.concatenate(labels))

"""Texts without labels that a linear model learns from: a teacher that reads better vectors labels them."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import joblib
import numpy as np
import numpy.typing as npt
import rich
import torch
from rich.progress import track

from heedful.text.arrays import Doubles, Ints
from heedful.training import contrastive
from heedful.training.config import Device
from heedful.training.linear import Linear, Recipe, TeacherKind, Texts
from heedful.training.teachers import MINILM, TITLES

FROZEN_STRENGTH, FINE_TUNED_STRENGTH = 10.0, 1.0
"""The teachers' inverse regularisation (docs/notes/fit.md)."""
Flags = npt.NDArray[np.bool_]


class Teacher(Protocol):
    """Labels the unlabelled texts, from labelled rows alone."""

    def answers(self, recipe: Recipe, rows: Ints, targets: Flags) -> Doubles:
        """Probabilities (U, C) of all unlabelled texts, from the rows numbered (M,) and their classes (M, C)."""
        ...


@dataclass(frozen=True, slots=True)
class FrozenTeacher:
    """Logistic regression on words and an encoder's vectors: of the N rows, and of the unlabelled texts."""

    rows: Texts
    unlabelled: Texts

    def answers(self, recipe: Recipe, rows: Ints, targets: Flags) -> Doubles:
        read = replace(recipe, strength=FROZEN_STRENGTH)
        return Linear.fit(read, self.rows[rows], targets).probabilities(self.unlabelled)


@dataclass(frozen=True, slots=True)
class FineTunedTeacher:
    """Logistic regression on the vectors of an encoder fine-tuned on the labelled rows, which takes minutes.

    So its answers are kept for each set of rows.
    """

    rows: Sequence[str]
    unlabelled: Sequence[str]
    seed: int
    encoder: str = MINILM
    device: Device = "cpu"
    _kept: dict[bytes, Doubles] = field(default_factory=dict)

    def answers(self, recipe: Recipe, rows: Ints, targets: Flags) -> Doubles:
        key = _key(rows, targets)
        if key not in self._kept:
            self._kept[key] = self._learn(recipe, rows, targets)
        return self._kept[key]

    def prepare(
        self, recipe: Recipe, parts: Sequence[Ints], targets: Flags, processes: int
    ) -> None:
        """Fine-tune on each of these parts of the rows, `processes` at a time. `targets` (N, C) are of all rows."""
        missing = [part for part in parts if _key(part, targets[part]) not in self._kept]
        at_once = min(processes, len(missing))
        if at_once < 2:
            return
        threads = torch.get_num_threads()
        jobs = [joblib.delayed(_alone)(self, threads, recipe, one, targets[one]) for one in missing]
        found = joblib.Parallel(at_once, return_as="generator")(jobs)
        for part, answers in zip(
            missing,
            track(found, "fine-tuning the teacher", total=len(missing), transient=True),
            strict=True,
        ):
            self._kept[_key(part, targets[part])] = answers

    def _learn(self, recipe: Recipe, rows: Ints, targets: Flags) -> Doubles:
        texts = [self.rows[row] for row in rows]
        model = contrastive.fine_tune(
            self.encoder, texts, targets, seed=self.seed, device=self.device
        )
        vectors = model.unit_vectors([*texts, *self.unlabelled])
        every = Texts([np.empty(0, np.int64)] * len(vectors), vectors)
        labelled = np.arange(len(texts))
        read = replace(recipe, words=False, strength=FINE_TUNED_STRENGTH)
        fitted = Linear.fit(read, every[labelled], targets)
        return fitted.probabilities(every[np.arange(len(texts), len(every))])


def _key(rows: Ints, targets: Flags) -> bytes:
    return rows.tobytes() + targets.tobytes()


def _alone(
    teacher: FineTunedTeacher, threads: int, recipe: Recipe, rows: Ints, targets: Flags
) -> Doubles:
    """Answers in a worker process, which shows no progress."""
    rich.reconfigure(quiet=True)
    torch.set_num_threads(threads)
    return teacher.answers(recipe, rows, targets)


@dataclass(frozen=True, slots=True)
class Lesson:
    """U texts without labels as the student reads them, and who labels them."""

    unlabelled: Texts
    frozen: FrozenTeacher
    fine_tuned: FineTunedTeacher | None = None
    title: str = TITLES[MINILM]

    @property
    def teachers(self) -> dict[TeacherKind, Teacher]:
        found: dict[TeacherKind, Teacher] = {"frozen": self.frozen}
        if self.fine_tuned:
            found["fine-tuned"] = self.fine_tuned
        return found

    def teach(self, recipe: Recipe, rows: Ints, texts: Texts, targets: Flags) -> Linear:
        """A student of the texts and their classes (M, C), and of the unlabelled texts with the teacher's answers.

        The teacher learned from the same texts alone, those of the numbers `rows` (M,).
        """
        assert recipe.teacher
        answers = self.teachers[recipe.teacher].answers(recipe, rows, targets)
        return Linear.fit(recipe, texts + self.unlabelled, np.concatenate([targets, answers]))

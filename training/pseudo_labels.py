"""Pseudo-labels: a teacher with better vectors labels the texts without labels that a linear model learns from."""

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
    """Labels the unlabelled texts after learning from labelled rows."""

    def answers(self, recipe: Recipe, rows: Ints, targets: Flags) -> Doubles:
        """Probabilities (U, C) of all unlabelled texts, from the rows numbered (M,) and their classes (M, C)."""
        ...


@dataclass(frozen=True, slots=True)
class FrozenTeacher:
    """Logistic regression on words and an encoder's vectors, of the N rows and of the unlabelled texts."""

    rows: Texts
    unlabelled: Texts

    def answers(self, recipe: Recipe, rows: Ints, targets: Flags) -> Doubles:
        teacher = replace(recipe, strength=FROZEN_STRENGTH)
        return Linear.fit(teacher, self.rows[rows], targets).probabilities(self.unlabelled)


@dataclass(frozen=True, slots=True)
class FineTunedTeacher:
    """Logistic regression on the vectors of an encoder fine-tuned on the labelled rows.

    The fine-tuning takes minutes, so the answers are kept for each set of rows.
    """

    rows: Sequence[str]
    unlabelled: Sequence[str]
    seed: int
    encoder: str = MINILM
    device: Device = "cpu"
    _answers: dict[bytes, Doubles] = field(default_factory=dict)

    def answers(self, recipe: Recipe, rows: Ints, targets: Flags) -> Doubles:
        key = _key(rows, targets)
        if key not in self._answers:
            self._answers[key] = self._fit(recipe, rows, targets)
        return self._answers[key]

    def prepare(
        self, recipe: Recipe, parts: Sequence[Ints], targets: Flags, processes: int
    ) -> None:
        """Fine-tune on each part of the rows, `processes` at a time; `targets` (N, C) are those of all rows."""
        missing = [part for part in parts if _key(part, targets[part]) not in self._answers]
        at_once = min(processes, len(missing))
        if at_once < 2:
            return
        threads = torch.get_num_threads()
        job = joblib.delayed(_answers_in_worker)
        jobs = [job(self, threads, recipe, part, targets[part]) for part in missing]
        results = joblib.Parallel(at_once, return_as="generator")(jobs)
        for part, answers in zip(
            missing,
            track(results, "fine-tuning the teacher", total=len(missing), transient=True),
            strict=True,
        ):
            self._answers[_key(part, targets[part])] = answers

    def _fit(self, recipe: Recipe, rows: Ints, targets: Flags) -> Doubles:
        texts = [self.rows[row] for row in rows]
        model = contrastive.fine_tune(
            self.encoder, texts, targets, seed=self.seed, device=self.device
        )
        vectors = model.unit_vectors([*texts, *self.unlabelled])
        all_texts = Texts([np.empty(0, np.int64)] * len(vectors), vectors)
        labelled = np.arange(len(texts))
        teacher = replace(recipe, words=False, strength=FINE_TUNED_STRENGTH)
        linear = Linear.fit(teacher, all_texts[labelled], targets)
        return linear.probabilities(all_texts[np.arange(len(texts), len(all_texts))])


def _key(rows: Ints, targets: Flags) -> bytes:
    return rows.tobytes() + targets.tobytes()


def _answers_in_worker(
    teacher: FineTunedTeacher, threads: int, recipe: Recipe, rows: Ints, targets: Flags
) -> Doubles:
    """Answers in a worker process, which shows no progress."""
    rich.reconfigure(quiet=True)
    torch.set_num_threads(threads)
    return teacher.answers(recipe, rows, targets)


@dataclass(frozen=True, slots=True)
class Lesson:
    """U texts without labels as the student reads them, and their teachers."""

    unlabelled: Texts
    frozen: FrozenTeacher
    fine_tuned: FineTunedTeacher | None = None
    title: str = TITLES[MINILM]

    @property
    def teachers(self) -> dict[TeacherKind, Teacher]:
        teachers: dict[TeacherKind, Teacher] = {"frozen": self.frozen}
        if self.fine_tuned:
            teachers["fine-tuned"] = self.fine_tuned
        return teachers

    def teach(self, recipe: Recipe, rows: Ints, texts: Texts, targets: Flags) -> Linear:
        """A student of the texts and their classes (M, C), and of the unlabelled texts with the teacher's answers.

        The teacher learned from the same texts alone, whose numbers are `rows` (M,).
        """
        assert recipe.teacher
        answers = self.teachers[recipe.teacher].answers(recipe, rows, targets)
        return Linear.fit(recipe, texts + self.unlabelled, np.concatenate([targets, answers]))

"""Texts without labels that a linear model learns from: a teacher that reads better vectors labels them."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from heedful.training.bag import Ints
from heedful.training.linear import Linear, Recipe, Texts

TEACHER_STRENGTH = 10.0
"""The teacher's inverse regularisation (docs/experiments.md)."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """U texts without labels as the student reads them; these and the N rows as the teacher reads them."""

    unlabelled: Texts
    unlabelled_to_teacher: Texts
    rows_to_teacher: Texts

    @classmethod
    def of(cls, rows: Texts, unlabelled: Texts, vectors: npt.NDArray[np.float32]) -> Self:
        """From both as the student reads them, and the teacher's vectors (N + U, E) of length 1."""
        return cls(
            unlabelled,
            Texts(unlabelled.keys, vectors[len(rows) :]),
            Texts(rows.keys, vectors[: len(rows)]),
        )

    def teach(
        self, recipe: Recipe, rows: Ints, texts: Texts, targets: npt.NDArray[np.bool_]
    ) -> Linear:
        """A student of the texts and their classes (M, C), and of the unlabelled texts with the teacher's answers.

        The teacher is fitted on the same texts alone, those of the numbers `rows` (M,).
        """
        taught_by = replace(recipe, strength=TEACHER_STRENGTH)
        teacher = Linear.fit(taught_by, self.rows_to_teacher[rows], targets)
        answers = teacher.probabilities(self.unlabelled_to_teacher)
        return Linear.fit(recipe, texts + self.unlabelled, np.concatenate([targets, answers]))

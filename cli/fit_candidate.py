"""What every candidate of `fit` shares: the problem, its score on held-out rows, and the choice among them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from heedful.export.linear_head import Provenance
from heedful.library.load import load
from heedful.library.model import Question
from heedful.runtime.bundles.card import Card, DataCard
from heedful.runtime.inputs import Inputs
from heedful.runtime.model_registry import Task
from heedful.text.arrays import Doubles
from heedful.training.assess import Flags, HeldOut, temperature
from heedful.training.fit import UNSTATED
from heedful.training.labelled_texts import Row, group
from heedful.training.linear import Recipe

BATCH = 64
"""Rows that are answered at once."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Labelled rows, their labels (C) and which of them each row has (N, C)."""

    name: str
    rows: Sequence[Row]
    labels: tuple[str, ...]
    targets: Flags
    multi_label: bool

    @classmethod
    def of(cls, file: Path, rows: Sequence[Row], separator: str) -> "Problem":
        given = [row.labels(separator) for row in rows]
        labels = tuple(sorted({label for row in given for label in row}))
        targets = np.array([[label in row for label in labels] for row in given])
        return cls(file.stem, rows, labels, targets, bool(separator))

    @property
    def groups(self) -> list[str]:
        """The same for rows that are held out together: `labelled_texts.group`."""
        return [group(row.texts) for row in self.rows]

    @property
    def card(self) -> DataCard:
        """The rows, for the bundle's card."""
        return DataCard(name=self.name, rows=len(self.rows), licence=UNSTATED, note="all rows")


@dataclass(frozen=True, slots=True)
class BundleFacts:
    """Where the chosen candidate's bundle goes, what its logits are divided by, and what its card says."""

    out: Path
    temperature: float
    abstain: float | None
    made: Provenance


@dataclass(frozen=True, slots=True)
class Candidate:
    """A way to train, and its answers on held-out rows. `make` trains on all rows and writes the bundle."""

    name: str
    held: HeldOut
    seconds: float
    make: Callable[[BundleFacts], Card]
    recipe: Recipe | None = None  # of a linear model


def best(candidates: Sequence[Candidate]) -> Candidate:
    """The best of the finalists, with all of its held-out rows."""
    chosen = _best(finalists(candidates))
    return next(one for one in candidates if one.make is chosen.make)


def finalists(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Those that the choice is between, all of them on the same held-out rows.

    Where some were held out on one part alone, they meet the best of the others, and that on the rows of this part.
    """
    shared = min((one.held.rows for one in candidates), key=len)
    of_all = [one for one in candidates if len(one.held.rows) > len(shared)]
    of_one_part = [one for one in candidates if len(one.held.rows) == len(shared)]
    if not of_all:
        return of_one_part
    first = _best(of_all)
    return [replace(first, held=first.held.only(shared)), *of_one_part]


def _best(candidates: Sequence[Candidate]) -> Candidate:
    """The candidate that gives the labels most probability, at most one standard error below the highest score.

    A few held-out rows tell scores apart worse than they tell probabilities apart. So of linear models one that the
    fine-tuned teacher taught goes before the others, then one that the frozen one taught, then one that reads both
    words and vectors: docs/fit.md.
    """
    top = max((one.held for one in candidates), key=lambda held: held.score)
    near = [one for one in candidates if one.held.score >= top.score - top.error]
    linear = [(one, one.recipe) for one in near if one.recipe]
    tuned = [one for one, recipe in linear if recipe.teacher == "fine-tuned"]
    taught = [one for one, recipe in linear if recipe.teacher]
    both = [one for one, recipe in linear if recipe.words and recipe.vectors]
    if preferred := tuned or taught or both:
        near = preferred + [one for one in near if not one.recipe]
    return min(near, key=lambda one: one.held.divided(temperature(one.held)).loss)


def answers(bundle: Path, parser: str, rows: Sequence[Row]) -> Doubles:
    """(N, C) logits of the bundle for texts or pairs, which are cut to its length; its labels are sorted."""
    task: Task = "nli" if len(rows[0].texts) == 2 else "classify"
    question = Question(task, "classify", {"truncate": True, "raw": True})
    found = []
    with load(bundle, parser=parser, device="cpu") as model:
        for start in range(0, len(rows), BATCH):
            texts = [text for row in rows[start : start + BATCH] for text in row.texts]
            paths = [f"text {i}" for i in range(1, len(texts) + 1)]
            inputs = Inputs(texts, paths, texts_per_row=len(rows[0].texts))
            found.append(model.answer(question, inputs))
        order = np.argsort(model.card.labels)
    return np.concatenate(found)[:, order].astype(np.float64)

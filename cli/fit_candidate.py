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
from heedful.training.labelled_texts import Row, group_key
from heedful.training.linear import Recipe

BATCH = 64
"""Rows that a bundle answers at once."""


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
        row_labels = [row.labels(separator) for row in rows]
        labels = tuple(sorted({label for row in row_labels for label in row}))
        targets = np.array([[label in row for label in labels] for row in row_labels])
        return cls(file.stem, rows, labels, targets, bool(separator))

    @property
    def groups(self) -> list[str]:
        """A key for each row, equal for rows that are held out together: `labelled_texts.group_key`."""
        return [group_key(row.texts) for row in self.rows]

    @property
    def card(self) -> DataCard:
        """The rows, for the bundle's card."""
        return DataCard(name=self.name, rows=len(self.rows), licence=UNSTATED, note="all rows")


@dataclass(frozen=True, slots=True)
class BundleFacts:
    """The folder of the chosen candidate's bundle, the temperature that divides its logits, and facts for its card."""

    out: Path
    temperature: float
    abstain: float | None
    provenance: Provenance


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
    return next(candidate for candidate in candidates if candidate.make is chosen.make)


def finalists(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates to choose from, all with the same held-out rows.

    Where some were held out on one part alone, they are compared with the best of the others, on the rows of that part.
    """
    shared = min((candidate.held.rows for candidate in candidates), key=len)
    on_all_parts = [candidate for candidate in candidates if len(candidate.held.rows) > len(shared)]
    on_one_part = [candidate for candidate in candidates if len(candidate.held.rows) == len(shared)]
    if not on_all_parts:
        return on_one_part
    first = _best(on_all_parts)
    return [replace(first, held=first.held.only(shared)), *on_one_part]


def _best(candidates: Sequence[Candidate]) -> Candidate:
    """The candidate with the lowest calibrated log loss, of those at most one standard error below the highest score.

    On few held-out rows scores differ less reliably than probabilities. For the same reason linear models taught by
    the fine-tuned teacher go before the other linear models, then those taught by the frozen teacher, then those that
    read both words and vectors: docs/fit.md.
    """
    top = max((candidate.held for candidate in candidates), key=lambda held: held.score)
    near = [candidate for candidate in candidates if candidate.held.score >= top.score - top.error]
    linear = [(candidate, candidate.recipe) for candidate in near if candidate.recipe]
    tuned = [candidate for candidate, recipe in linear if recipe.teacher == "fine-tuned"]
    taught = [candidate for candidate, recipe in linear if recipe.teacher]
    mixed = [candidate for candidate, recipe in linear if recipe.words and recipe.vectors]
    if preferred := tuned or taught or mixed:
        near = preferred + [candidate for candidate in near if not candidate.recipe]
    return min(near, key=lambda candidate: candidate.held.divided(temperature(candidate.held)).loss)


def answers(bundle: Path, parser: str, rows: Sequence[Row]) -> Doubles:
    """(N, C) logits of the bundle for texts or pairs, cut to its length; the columns are its labels, sorted."""
    task: Task = "nli" if len(rows[0].texts) == 2 else "classify"
    question = Question(task, {"truncate": True, "raw": True})
    logits = []
    with load(bundle, parser=parser, device="cpu") as model:
        for start in range(0, len(rows), BATCH):
            texts = [text for row in rows[start : start + BATCH] for text in row.texts]
            paths = [f"text {i}" for i in range(1, len(texts) + 1)]
            inputs = Inputs(texts, paths, texts_per_row=len(rows[0].texts))
            logits.append(model.answer(question, inputs))
        order = np.argsort(model.card.labels)
    return np.concatenate(logits)[:, order].astype(np.float64)

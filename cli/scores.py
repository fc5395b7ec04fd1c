"""How well answers agree with labels, in numpy alone: accuracy, each class, confusion, calibration."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from heedful.text.arrays import Doubles, Ints

BINS = 10
"""Bins of confidence, equally wide, for the calibration error (Guo et al. 2017, section 2)."""
Z = 1.959964
"""Normal quantile of a 95 % interval."""
CLASS_COLUMNS = ("label", "precision", "recall", "F1", "rows")


@dataclass(frozen=True, slots=True)
class Scores:
    """N rows: their `labels` as numbers (N,), and the probabilities (N, C) of the model's classes 0 to C - 1.

    A label from C on is none of the model's, and its row counts as wrong. `answered` (N,) is false where it abstains.
    """

    names: Sequence[str]  # of the C classes, then of other labels
    labels: Ints
    probabilities: Doubles
    answered: npt.NDArray[np.bool_]

    @property
    def answers(self) -> Ints:
        return np.asarray(self.probabilities.argmax(axis=1))

    @property
    def right(self) -> npt.NDArray[np.bool_]:
        return np.asarray(self.answers == self.labels)

    @property
    def confusion(self) -> npt.NDArray[np.int64]:
        """(K, K) the number of rows by label (row) and answer (column)."""
        return confusion(self.labels, self.answers, len(self.names))

    def summary(self) -> dict[str, Any]:
        """All figures, for JSON."""
        rows, right = len(self.labels), self.right
        low, high = wilson(int(right.sum()), rows)
        table = self.confusion
        classes = by_class(self.names, table.diagonal(), table.sum(axis=1), table.sum(axis=0))
        count = int(self.answered.sum())
        known = self.labels < self.probabilities.shape[1]
        likely = self.probabilities[known, self.labels[known]]
        return {
            "rows": rows,
            "accuracy": float(right.mean()),
            "low": low,
            "high": high,
            "macro_f1": float(np.mean([row["f1"] for row in classes if row["rows"]])),
            "log_loss": float(-np.log(np.maximum(likely, 1e-12)).mean()) if known.any() else None,
            "calibration_error": calibration_error(self.probabilities.max(axis=1), right),
            "answered": count,
            "accuracy_of_answered": float(right[self.answered].mean()) if count else None,
            "classes": classes,
            "confusion": table.tolist(),
        }


def confusion(labels: Ints, answers: Ints, count: int) -> npt.NDArray[np.int64]:
    """(count, count) the number of rows by label (row of the table) and answer (column)."""
    flat = np.bincount(labels * count + answers, minlength=count * count)
    return flat.reshape(count, count)


def confusions(names: Sequence[str], table: Sequence[Sequence[int]]) -> list[tuple[int, str, str]]:
    """Count, label and answer of each kind of wrong answer, the most frequent first."""
    errors = [
        (count, names[i], names[j])
        for i, row in enumerate(table)
        for j, count in enumerate(row)
        if count and i != j
    ]
    return sorted(errors, key=lambda error: -error[0])


def by_class(names: Sequence[str], right: Ints, rows: Ints, answers: Ints) -> list[dict[str, Any]]:
    """Precision, recall, F1 and rows of each class from counts (K,); 0 for 0 divided by 0."""
    precision = right / np.maximum(answers, 1)
    recall = right / np.maximum(rows, 1)
    f1 = 2 * right / np.maximum(rows + answers, 1)
    columns = (precision.tolist(), recall.tolist(), f1.tolist(), rows.tolist())
    return [
        {"label": name, "precision": p, "recall": r, "f1": f, "rows": n}
        for name, p, r, f, n in zip(names, *columns, strict=True)
    ]


def class_cells(classes: Sequence[dict[str, Any]]) -> list[tuple[str, ...]]:
    """The cells below CLASS_COLUMNS, from the rows of `by_class`."""
    return [
        (
            row["label"],
            *(f"{row[name]:.3f}" for name in ("precision", "recall", "f1")),
            str(row["rows"]),
        )
        for row in classes
    ]


def wilson(right: int, rows: int) -> tuple[float, float]:
    """Wilson's interval of 95 % for a share."""
    share, z2 = right / rows, Z**2 / rows
    middle, half = share + z2 / 2, Z * np.sqrt(share * (1 - share) / rows + z2 / (4 * rows))
    high = 1.0 if right == rows else float((middle + half) / (1 + z2))
    return float((middle - half) / (1 + z2)), high


def calibration_error(
    confidence: Doubles, right: npt.NDArray[np.bool_], count: int = BINS
) -> float:
    """The mean distance of confidence (N,) from accuracy, over bins of confidence, weighted by their rows."""
    bins = np.minimum((confidence * count).astype(int), count - 1)
    return float(np.abs(np.bincount(bins, confidence - right)).sum() / len(confidence))

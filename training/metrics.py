"""The metrics of each kind of task."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from heedful.text.kinds import Kind

Numbers = npt.NDArray[Any]
Metric = Callable[[Numbers, Numbers], float]
"""Answers (N,) and labels (N,) -> a score."""


def accuracy(answers: Numbers, labels: Numbers) -> float:
    """Share of answers that equal the label."""
    return float((answers == labels).mean())


def pearson(answers: Numbers, labels: Numbers) -> float:
    """Linear correlation; 0 where one side is constant."""
    return _correlation(stats.pearsonr, answers, labels)


def spearman(answers: Numbers, labels: Numbers) -> float:
    """Rank correlation with averaged ties; 0 where one side is constant."""
    return _correlation(stats.spearmanr, answers, labels)


def mse(answers: Numbers, labels: Numbers) -> float:
    """Mean squared error: lower is better, unlike the other metrics here."""
    return float(((answers - labels) ** 2).mean())


def _correlation(statistic: Callable[..., Any], answers: Numbers, labels: Numbers) -> float:
    if np.ptp(answers) == 0 or np.ptp(labels) == 0:
        return 0.0
    return float(statistic(answers, labels).statistic)


METRICS: Mapping[Kind, Mapping[str, Metric]] = {
    "classification": {"accuracy": accuracy},
    "nli": {"accuracy": accuracy},
    "relatedness": {"pearson": pearson, "spearman": spearman, "mse": mse},
    "embedding": {"spearman": spearman, "pearson": pearson},
}
"""By kind and name. The first of a kind is its dev score, of which higher is better."""


def dev_metric(kind: Kind) -> tuple[str, Metric]:
    """The name and function of a kind's dev score."""
    return next(iter(METRICS[kind].items()))


def standard_error(value: float, metric: str, rows: int) -> float | None:
    """Of an accuracy over so many rows; None for another metric."""
    return math.sqrt(value * (1 - value) / rows) if metric == "accuracy" else None

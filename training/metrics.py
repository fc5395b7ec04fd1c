"""What a model of each kind is judged by: its answers against the labels."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from heedful.text.kinds import Kind

Numbers = npt.NDArray[Any]
Metric = Callable[[Numbers, Numbers], float]
"""Answers (N,) and labels (N,) -> a number."""


def accuracy(answers: Numbers, labels: Numbers) -> float:
    """Share of the answers that are the label."""
    return float((answers == labels).mean())


def pearson(answers: Numbers, labels: Numbers) -> float:
    """Linear correlation r; 0 where one side is constant, which has none."""
    return _correlation(stats.pearsonr, answers, labels)


def spearman(answers: Numbers, labels: Numbers) -> float:
    """Correlation of the ranks, ties sharing theirs; 0 where one side is constant."""
    return _correlation(stats.spearmanr, answers, labels)


def mse(answers: Numbers, labels: Numbers) -> float:
    """Mean squared error: the one metric here that is better when it is lower."""
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
"""By kind and by name; the first of a kind is its dev score, and the higher that is, the better."""


def dev_metric(kind: Kind) -> tuple[str, Metric]:
    """The name of a kind's dev score, and how it is computed."""
    return next(iter(METRICS[kind].items()))

"""The metrics of each kind of task."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from heedful.text.kinds import Kind

Numbers = npt.NDArray[Any]
Metric = Callable[[Numbers, Numbers], float]
"""Answers (N,) and labels (N,) -> a score."""
DEPTH = 10
"""Documents of a search that nDCG counts."""


@dataclass(frozen=True, slots=True)
class Score:
    """A metric's value on the rows of a split."""

    dataset: str
    split: str
    metric: str
    value: float
    rows: int

    def as_dict(self) -> dict[str, Any]:
        """The score as a card holds it."""
        return asdict(self)


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


def ndcg(scores: Numbers, gains: Sequence[Mapping[int, float]]) -> float:
    """Scores (Q, N) of the documents for each query -> the mean nDCG@10 (Jarvelin and Kekalainen 2002), linear gains.

    Of equal scores the earlier document comes first.
    """
    discounts = 1 / np.log2(np.arange(2, DEPTH + 2))
    values = []
    for row, relevant in zip(scores, gains, strict=True):
        first = np.argsort(-row, kind="stable")[:DEPTH]
        gained = sum(relevant.get(int(i), 0.0) * d for i, d in zip(first, discounts, strict=False))
        ideal = sorted(relevant.values(), reverse=True)[:DEPTH]
        values.append(gained / sum(g * d for g, d in zip(ideal, discounts, strict=False)))
    return float(np.mean(values))


LIMITS = (0.05, 20.0)
"""The lowest and the highest temperature."""


def fit_temperature(logits: Numbers, labels: Numbers) -> float:
    """The divisor of logits (N, C) with which the right classes (N,) are likeliest: temperature scaling.

    It calibrates the probabilities (Guo et al. 2017).
    """
    rows, classes = np.arange(len(labels)), labels.astype(int)

    def loss(temperature: float) -> float:
        return -float(log_softmax(logits / temperature, axis=1)[rows, classes].mean())

    return round(best_temperature(loss, LIMITS), 4)


def best_temperature(loss: Callable[[float], float], limits: tuple[float, float]) -> float:
    """The temperature between `limits` with the lowest loss."""
    minimum = minimize_scalar(
        lambda power: loss(float(np.exp(power))), bounds=np.log(limits), method="bounded"
    )
    return float(np.exp(minimum.x))


METRICS: Mapping[Kind, Mapping[str, Metric]] = {
    "classification": {"accuracy": accuracy},
    "nli": {"accuracy": accuracy},
    "relatedness": {"pearson": pearson, "spearman": spearman, "mse": mse},
    "embedding": {"spearman": spearman, "pearson": pearson},
}
"""By kind and name. The first of a kind is its dev score; higher is better."""


def dev_metric(kind: Kind) -> tuple[str, Metric]:
    """The name and function of a kind's dev score."""
    return next(iter(METRICS[kind].items()))

"""How well a classifier does on rows that it was not trained on, and what follows from that."""

import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax, logsumexp
from scipy.stats import binomtest
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedGroupKFold

from heedful.training.bag import Ints
from heedful.training.calibration import best_temperature
from heedful.training.linear import Floats
from heedful.training.soft_logistic import probabilities

Flags = npt.NDArray[np.bool_]
FEW = 500
FOLDS, TENTH = 5, 10
"""Every row is held out once, in one of FOLDS parts, where there are fewer than FEW rows or where no class has TENTH
different texts; else one part of TENTH is held out."""
COVERAGES = (1.0, 0.9, 0.8, 0.5)
SUSPECTS = 20


@dataclass(frozen=True, slots=True)
class Split:
    """Rows to train on and rows held out."""

    train: Ints
    held: Ints


def splits(
    targets: Flags, groups: Sequence[Hashable], *, seed: int, parts: int | None = None
) -> list[Split]:
    """Stratified by class; rows of one group (equal texts) stand on one side. See FOLDS for `parts`.

    One class at least has two groups.
    """
    numbers = {group: number for number, group in enumerate(dict.fromkeys(groups))}
    classes = targets.argmax(axis=1)
    of = np.array([numbers[group] for group in groups])
    most = most_texts(targets, groups)
    few = parts is not None or len(targets) < FEW or most < TENTH
    count = min(parts or FOLDS, most) if few else TENTH
    folds = StratifiedGroupKFold(count, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a class of fewer rows than folds
        found = [Split(*sides) for sides in folds.split(of, classes, of)]
    made = [part for part in found if len(part.train) and len(part.held)]
    return made if few else made[:1]


def most_texts(targets: Flags, groups: Sequence[Hashable]) -> int:
    """The number of different texts (groups) of the class that has most."""
    class_of = dict(zip(groups, targets.argmax(axis=1).tolist(), strict=True))
    return max(Counter(class_of.values()).values())


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Logits (M, C) and classes (M, C) of the held-out `rows`, and the fold (M,) of each."""

    rows: Ints
    logits: Floats
    targets: Flags
    folds: Ints
    multi_label: bool = False

    @property
    def probabilities(self) -> Floats:
        return probabilities(self.logits, multi_label=self.multi_label)

    @property
    def answers(self) -> Flags:
        """(M, C) the classes answered: the best, or every one of probability 0.5."""
        if self.multi_label:
            above: Flags = self.logits > 0
            return above
        best: Flags = np.eye(self.logits.shape[1], dtype=bool)[self.logits.argmax(axis=1)]
        return best

    @property
    def right(self) -> Flags:
        """(M,) whether the answer is the label, or all labels."""
        found: Flags = np.all(self.answers == self.targets, axis=1)
        return found

    @property
    def score(self) -> float:
        """Accuracy; with several labels a row micro-F1."""
        return self.scored(np.ones(len(self.rows), bool))

    def scored(self, rows: Flags) -> float:
        if self.multi_label:
            return float(
                f1_score(self.targets[rows], self.answers[rows], average="micro", zero_division=0)
            )
        return float(self.right[rows].mean())

    @property
    def deviation(self) -> float | None:
        """The standard deviation of the folds' scores; None for one part."""
        scores = [self.scored(self.folds == fold) for fold in np.unique(self.folds)]
        return float(np.std(scores, ddof=1)) if len(scores) > 1 else None

    @property
    def macro(self) -> float:
        return float(f1_score(self.targets, self.answers, average="macro", zero_division=0))

    @property
    def loss(self) -> float:
        """Mean negative log likelihood of the labels."""
        return _loss(self, 1.0)

    def divided(self, temperature: float) -> "HeldOut":
        return HeldOut(
            self.rows, self.logits / temperature, self.targets, self.folds, self.multi_label
        )


def held_out(
    parts: Sequence[Split],
    targets: Flags,
    answer: Callable[[Split], Floats],
    *,
    multi_label: bool = False,
) -> HeldOut:
    """`answer` trains on one side and gives the logits of the other."""
    logits = np.concatenate([answer(part) for part in parts])
    rows = np.concatenate([part.held for part in parts])
    folds = np.concatenate([np.full(len(part.held), i) for i, part in enumerate(parts)])
    return HeldOut(rows, logits, targets[rows], folds, multi_label)


def temperature(held: HeldOut) -> float:
    """What the logits are divided by so that the held-out labels are most likely, between 0.1 and 10."""
    return best_temperature(lambda temperature: _loss(held, temperature), (0.1, 10.0))


def _loss(held: HeldOut, temperature: float) -> float:
    logits = held.logits / temperature
    if held.multi_label:
        signed = np.where(held.targets, -logits, logits)
        return float(np.logaddexp(0, signed).mean())
    return float(-log_softmax(logits, axis=1)[held.targets].mean())


def interval(right: int, rows: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share."""
    found = binomtest(right, rows).proportion_ci(method="wilson")
    return float(found.low), float(found.high)


def threshold(held: HeldOut, precision: float) -> tuple[float, float] | None:
    """The lowest probability from which on held-out answers reach `precision`, and the share answered.

    None where no threshold reaches it.
    """
    sure, right = _by_confidence(held)
    precise = np.cumsum(right) / np.arange(1, len(right) + 1) >= precision
    ends = np.append(sure[:-1] > sure[1:], True)  # a threshold answers all of equal probability
    reached = np.flatnonzero(precise & ends)
    if not len(reached):
        return None
    last = int(reached[-1])
    return float(sure[last]), (last + 1) / len(right)


def risk_coverage(held: HeldOut) -> list[tuple[float, float]]:
    """(share answered, accuracy of these answers), the surest first."""
    _, right = _by_confidence(held)
    kept = [max(1, round(share * len(right))) for share in COVERAGES]
    return [
        (share, float(right[:count].mean())) for share, count in zip(COVERAGES, kept, strict=True)
    ]


def _by_confidence(held: HeldOut) -> tuple[Floats, Flags]:
    """The best probability of each row, the highest first, and whether the answer is right."""
    sure = held.probabilities.max(axis=1)
    order = np.argsort(-sure, kind="stable")
    return sure[order], held.right[order]


def suspects(held: HeldOut) -> list[tuple[int, int]]:
    """(row, the class answered) where the label given is least likely, at most SUSPECTS of the wrong ones."""
    if held.multi_label:
        given = -np.where(held.targets, -held.logits, held.logits).max(axis=1)
    else:
        given = (held.logits - logsumexp(held.logits, axis=1, keepdims=True))[held.targets]
    order = [i for i in np.argsort(given, kind="stable").tolist() if not held.right[i]]
    best = np.where(held.targets, -np.inf, held.logits).argmax(axis=1)
    return [(int(held.rows[i]), int(best[i])) for i in order[:SUSPECTS]]

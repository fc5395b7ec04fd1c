"""Cross-validation: the scores of a classifier on held-out rows, its temperature, threshold and suspect labels."""

import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax, logsumexp
from scipy.stats import norm
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedGroupKFold

from heedful.text.arrays import Doubles, Ints
from heedful.training.metrics import best_temperature
from heedful.training.soft_logistic import probabilities

Flags = npt.NDArray[np.bool_]
ONE_SPLIT_FOR_ENCODERS = 500
"""Rows from which an encoder is trained on one split alone, because each takes minutes."""
ONE_SPLIT_FOR_ALL = 5_000
"""Rows from which a linear model is too: a tenth of them is enough for the scores, and five parts take a minute."""
FOLDS, MIN_TEXTS = 5, 10
"""Every row is held out once, in one of FOLDS parts, where there are fewer rows than that or where no class has
MIN_TEXTS different texts; else one part of MIN_TEXTS is held out."""
COVERAGES = (1.0, 0.9, 0.8, 0.5)
CONFIDENCE = 0.8
"""A threshold reaches a precision where Wilson's one-sided lower limit, at this confidence, does: the share of right
answers itself, on the rows that chose the threshold, is higher than on other texts."""


@dataclass(frozen=True, slots=True)
class Split:
    """Rows to train on and rows held out."""

    train: Ints
    held: Ints


def splits(
    targets: Flags, groups: Sequence[Hashable], *, seed: int, most: int = ONE_SPLIT_FOR_ALL
) -> list[Split]:
    """Splits stratified by class; the rows of a group (such as equal texts) stay on one side.

    From `most` rows on there is one split: see FOLDS. At least one class must have two groups.
    """
    numbers = {group: number for number, group in enumerate(dict.fromkeys(groups))}
    classes = targets.argmax(axis=1)
    group_numbers = np.array([numbers[group] for group in groups])
    texts = most_texts(targets, groups)
    few = len(targets) < most or texts < MIN_TEXTS
    count = min(FOLDS, texts) if few else MIN_TEXTS
    folds = StratifiedGroupKFold(count, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a class of fewer rows than folds
        parts = [Split(*sides) for sides in folds.split(group_numbers, classes, group_numbers)]
    filled = [part for part in parts if len(part.train) and len(part.held)]
    return filled if few else filled[:1]


def encoder_splits(parts: Sequence[Split]) -> Sequence[Split]:
    """Only the first split from ONE_SPLIT_FOR_ENCODERS rows on."""
    return parts if len(parts[0].train) + len(parts[0].held) < ONE_SPLIT_FOR_ENCODERS else parts[:1]


def most_texts(targets: Flags, groups: Sequence[Hashable]) -> int:
    """The number of different texts (groups) of the class that has most."""
    pairs = set(zip(groups, targets.argmax(axis=1).tolist(), strict=True))
    return max(Counter(number for _, number in pairs).values())


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Logits (M, C) and classes (M, C) of the held-out `rows`, and the fold (M,) of each."""

    rows: Ints
    logits: Doubles
    targets: Flags
    folds: Ints
    multi_label: bool = False
    balanced: bool = False
    """Whether classes weigh the same in score and loss; with several labels a row, having and not having each label."""

    @property
    def metric(self) -> str:
        if self.balanced:
            return "balanced accuracy"
        return "micro-F1" if self.multi_label else "accuracy"

    @property
    def probabilities(self) -> Doubles:
        return probabilities(self.logits, multi_label=self.multi_label)

    @property
    def answers(self) -> Flags:
        """(M, C) the classes answered: the best, or all of probability 0.5 and more, as the bundle answers."""
        if self.multi_label:
            likely: Flags = self.logits >= 0
            return likely
        best: Flags = np.eye(self.logits.shape[1], dtype=bool)[self.logits.argmax(axis=1)]
        return best

    @property
    def right(self) -> Flags:
        """(M,) whether the answer is the label, or all labels."""
        right: Flags = np.all(self.answers == self.targets, axis=1)
        return right

    @property
    def score(self) -> float:
        """The metric."""
        if self.balanced:
            right = self.answers == self.targets if self.multi_label else self.right
            return float(np.average(right, weights=self._weights))
        if self.multi_label:
            return float(f1_score(self.targets, self.answers, average="micro", zero_division=0))
        return float(self.right.mean())

    @property
    def error(self) -> float:
        """The standard error of the score."""
        weights = self._weights.reshape(len(self.rows), -1).sum(axis=1)
        return float(np.sqrt(self.score * (1 - self.score) * (weights**2).sum()))

    @property
    def _weights(self) -> Doubles:
        """Weights of the rows (M,), or of each row's having or not having a label (M, C); they sum to 1."""
        shape = self.targets.shape if self.multi_label else (len(self.rows),)
        if not self.balanced:
            return np.full(shape, 1 / np.prod(shape))
        have = self.targets.sum(axis=0)
        if self.multi_label:
            lack = len(self.rows) - have
            weights = 1 / np.where(self.targets, have, lack)
        else:
            weights = 1 / np.broadcast_to(have, self.targets.shape)[self.targets]
        normalised: Doubles = weights / weights.sum()
        return normalised

    @property
    def deviation(self) -> float | None:
        """The standard deviation of the folds' scores; None for one part."""
        folds = [np.flatnonzero(self.folds == fold) for fold in np.unique(self.folds)]
        scores = [self.take(places).score for places in folds]
        return float(np.std(scores, ddof=1)) if len(scores) > 1 else None

    @property
    def macro(self) -> float:
        """The mean F1 of the classes that a row has or is answered; of others it is undefined."""
        return float(f1_score(self.targets, self.answers, average="macro", zero_division=np.nan))

    @property
    def loss(self) -> float:
        """Mean negative log likelihood of the labels, weighted if balanced."""
        return _loss(self, 1.0)

    def divided(self, temperature: float) -> "HeldOut":
        return replace(self, logits=self.logits / temperature)

    def only(self, rows: Ints) -> "HeldOut":
        """The answers for the held-out rows with these numbers."""
        return self.take(np.flatnonzero(np.isin(self.rows, rows)))

    def take(self, places: Ints) -> "HeldOut":
        return replace(
            self,
            rows=self.rows[places],
            logits=self.logits[places],
            targets=self.targets[places],
            folds=self.folds[places],
        )


def held_out(
    parts: Sequence[Split],
    targets: Flags,
    answer: Callable[[Split], Doubles],
    *,
    multi_label: bool = False,
    balanced: bool = False,
) -> HeldOut:
    """The logits of all parts; `answer` trains without a part and gives its logits."""
    logits = np.concatenate([answer(part) for part in parts])
    rows = np.concatenate([part.held for part in parts])
    folds = np.concatenate([np.full(len(part.held), i) for i, part in enumerate(parts)])
    return HeldOut(rows, logits, targets[rows], folds, multi_label, balanced)


def temperature(held: HeldOut) -> float:
    """The divisor of the logits, from 0.1 to 10, with the lowest loss on the held-out labels."""
    return best_temperature(lambda temperature: _loss(held, temperature), (0.1, 10.0))


def _loss(held: HeldOut, temperature: float) -> float:
    logits = held.logits / temperature
    if held.multi_label:
        losses = np.logaddexp(0, np.where(held.targets, -logits, logits))
    else:
        losses = -log_softmax(logits, axis=1)[held.targets]
    return float(np.average(losses, weights=held._weights))


def threshold(held: HeldOut, precision: float) -> float | None:
    """The lowest probability from which answers reach `precision`, those to other texts included: see CONFIDENCE.

    None where no threshold reaches it.
    """
    sure, limits = _limits(held)
    reached = np.flatnonzero(limits >= precision)
    return float(sure[reached[-1]]) if len(reached) else None


def most_precise(held: HeldOut) -> float:
    """The highest precision that a threshold reaches."""
    return float(_limits(held)[1].max())


def answered(held: HeldOut, least: float) -> tuple[int, int]:
    """The number of answers from this probability on, and of right ones among them."""
    sure, right = _by_confidence(held)
    count = int((sure >= least).sum())
    return count, int(right[:count].sum())


def _limits(held: HeldOut) -> tuple[Doubles, Doubles]:
    """Each threshold, the highest first, and Wilson's lower limit of the precision of the answers from it on."""
    sure, right = _by_confidence(held)
    ends = np.append(sure[:-1] > sure[1:], True)  # a threshold answers all of equal probability
    count = np.arange(1, len(right) + 1)
    share = np.cumsum(right) / count
    z = norm.ppf(CONFIDENCE)
    spread = z * np.sqrt(share * (1 - share) / count + (z / (2 * count)) ** 2)
    limits = (share + z**2 / (2 * count) - spread) / (1 + z**2 / count)
    return sure[ends], limits[ends]


def risk_coverage(held: HeldOut) -> list[tuple[float, float]]:
    """(share of rows answered, accuracy of these answers) for COVERAGES: the surest answers of each share."""
    _, right = _by_confidence(held)
    counts = [max(1, round(share * len(right))) for share in COVERAGES]
    return [
        (share, float(right[:count].mean())) for share, count in zip(COVERAGES, counts, strict=True)
    ]


def _by_confidence(held: HeldOut) -> tuple[Doubles, Flags]:
    """The probability of each row's answer, the highest first, and whether the answer is right.

    With several labels a row, an answer is whether the row has each label, and its probability the product.
    """
    likely = held.probabilities
    sure = np.maximum(likely, 1 - likely).prod(axis=1) if held.multi_label else likely.max(axis=1)
    order = np.argsort(-sure, kind="stable")
    return sure[order], held.right[order]


def suspects(held: HeldOut) -> list[tuple[int, int]]:
    """(row, the class answered) of the wrong answers, the least likely labels first."""
    if held.multi_label:
        likelihood = -np.where(held.targets, -held.logits, held.logits).max(axis=1)
    else:
        likelihood = (held.logits - logsumexp(held.logits, axis=1, keepdims=True))[held.targets]
    order = [i for i in np.argsort(likelihood, kind="stable").tolist() if not held.right[i]]
    best = np.where(held.targets, -np.inf, held.logits).argmax(axis=1)
    return [(int(held.rows[i]), int(best[i])) for i in order]

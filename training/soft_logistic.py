"""Logistic regression with probabilities as targets, which scikit-learn does not have."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, softmax, xlogy

from heedful.text.arrays import Doubles

ITERATIONS = 100
TINY = np.finfo(np.float64).tiny


def probabilities(logits: Doubles, *, multi_label: bool) -> Doubles:
    """Probabilities of the classes (N, C): a softmax, or a sigmoid for each label."""
    values: Doubles = expit(logits) if multi_label else softmax(logits, axis=1)
    return values


def soft_logistic(
    parts: Sequence[Any],
    targets: Doubles,
    strength: float,
    *,
    multi_label: bool,
    balanced: bool = False,
) -> tuple[Doubles, Doubles]:
    """Weights (C, F) and intercepts (C,) for targets (N, C): a softmax, or a sigmoid for each label.

    `parts` are matrices, dense or sparse, with N rows and F columns in all. L-BFGS minimises the cross
    entropy, summed over the rows, and |weights|^2 / (2 strength), as scikit-learn does for labels. Where `balanced`,
    the classes (with sigmoids, having and not having each label) weigh the same, as with scikit-learn's class_weight.
    """
    have, lack = targets, 1 - targets
    if balanced:
        sides = 2 if multi_label else targets.shape[1]
        have, lack = (
            side * (len(side) / (sides * np.maximum(side.sum(axis=0), TINY)))
            for side in (have, lack)
        )
    total = have + lack if multi_label else have.sum(axis=1, keepdims=True)
    classes = targets.shape[1]
    sizes = [part.shape[1] for part in parts]
    ends = np.cumsum(sizes)

    def loss_and_gradient(flat: Doubles) -> tuple[float, Doubles]:
        table = flat.reshape(-1, classes)
        weights, intercepts = table[:-1], table[-1]
        blocks = np.split(weights, ends[:-1])
        logits = intercepts + sum(part @ block for part, block in zip(parts, blocks, strict=True))
        likely = probabilities(logits, multi_label=multi_label)
        loss = -xlogy(have, np.maximum(likely, TINY)).sum()
        if multi_label:
            loss -= xlogy(lack, np.maximum(1 - likely, TINY)).sum()
        error = likely * total - have
        gradient = np.concatenate([part.T @ error for part in parts]) + weights / strength
        gradient = np.concatenate([gradient, error.sum(axis=0, keepdims=True)])
        return float(loss + (weights**2).sum() / (2 * strength)), gradient.ravel()

    start = np.zeros((sum(sizes) + 1) * classes)
    options = {"maxiter": ITERATIONS, "ftol": 1e-5, "maxcor": 5}
    minimum = minimize(loss_and_gradient, start, jac=True, method="L-BFGS-B", options=options)
    table = minimum.x.reshape(-1, classes)
    return table[:-1].T, table[-1]

"""An embedding whose vectors lie around zero: unrelated sentences get smaller cosines.

Vectors of sentences share a mean, which adds to every cosine (Mu and Viswanath 2018, "All-but-the-Top", section 2.1).
"""

import copy
from dataclasses import replace

import numpy as np
import torch
from scipy.optimize import brentq

from heedful.export.bundle import TrainedModel
from heedful.export.errors import ExportError
from heedful.runtime.answers import normalise
from heedful.text.arrays import Floats


def mean_cosine(vectors: Floats) -> float:
    """Vectors (N, D) -> the mean over all pairs of two of them."""
    count = len(vectors)
    total = normalise(vectors).sum(axis=0, dtype=np.float64)
    return float((total @ total - count) / (count * (count - 1)))


def offset(vectors: Floats, cosine: float) -> Floats:
    """Vectors (N, D) -> the share of their mean (D,) without which their mean cosine is `cosine`.

    Raises ExportError where it is not larger now, or is still larger without the whole mean.
    """
    mean = vectors.mean(axis=0)

    def without(share: float) -> float:
        return mean_cosine(vectors - np.float32(share) * mean)

    now, least = without(0), without(1)
    if not least < cosine < now:
        raise ExportError(
            f"--centre: the mean cosine of training sentences is {now:.3f}, and {least:.3f} without their "
            "mean: name one between"
        )
    share = brentq(lambda share: without(share) - cosine, 0, 1)
    found: Floats = np.float32(share) * mean
    return found


def shifted(trained: TrainedModel, by: Floats) -> TrainedModel:
    """The model whose vectors are less by `by` (D,). Raises ExportError for one without a projection."""
    model = copy.deepcopy(trained.model)
    if trained.kind != "embedding" or model.projection is None:
        raise ExportError(
            "--centre: only the vectors of an embedding with a projection are centred"
        )
    with torch.no_grad():
        model.projection.bias.sub_(torch.from_numpy(by))
    return replace(trained, model=model)

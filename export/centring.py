"""An embedding whose vectors lie around zero: unrelated sentences get smaller cosines.

Vectors of sentences share a mean, which adds to every cosine (Mu and Viswanath 2018, "All-but-the-Top", section 2.1).
"""

import numpy as np
import onnx
from onnx import numpy_helper
from scipy.optimize import brentq

from heedful.export.errors import ExportError
from heedful.export.graph_edits import edited
from heedful.runtime.answers import normalise
from heedful.runtime.bundles.bundle import Bundle
from heedful.text.arrays import Floats

BIAS = "projection.bias"
"""End of the name of the tensor that the projection of an embedding adds."""


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
            f"the mean cosine of these sentences is {now:.3f}, and {least:.3f} without their mean: name one between"
        )
    share = brentq(lambda share: without(share) - cosine, 0, 1)
    found: Floats = np.float32(share) * mean
    return found


def shifted(bundle: Bundle, by: Floats) -> dict[str, bytes]:
    """The graph files of a bundle whose vectors are less by `by` (D,). Raises ExportError without a projection."""

    def edit(model: onnx.ModelProto) -> onnx.ModelProto:
        biases = [one for one in model.graph.initializer if one.name.endswith(BIAS)]
        if len(biases) != 1:
            raise ExportError(f"{bundle.card.name} has no projection, which an embedding has")
        (bias,) = biases
        bias.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(bias) - by, bias.name))
        return model

    return edited(bundle, edit)

"""What the service answers, and the arithmetic at its end."""

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from heedful.runtime.card import Card
from heedful.runtime.errors import BadInput
from heedful.text.parse import Parse

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds. `parse` and `queue` hold the waiting for a parse process and for the session."""

    parse: float = 0.0
    queue: float = 0.0
    inference: float = 0.0


@dataclass(frozen=True, slots=True)
class Result(Generic[T]):
    """An answer, the card of the model that gave it, and what it took."""

    value: T
    card: Card
    timing: Timing
    inputs: int
    truncated: int  # inputs that were cut
    tokens: int
    unknown: int  # tokens that the vocabulary does not hold


@dataclass(frozen=True, slots=True)
class TokenizedText:
    """A text's tokens and what the model sees of them."""

    parse: Parse
    ids: npt.NDArray[np.int64]  # (L,)
    known: npt.NDArray[np.bool_]  # (L,)


def normalise(
    vectors: npt.NDArray[np.float32], dimensions: int | None = None
) -> npt.NDArray[np.float32]:
    """Cut rows (N, D) to their first `dimensions` values, then scale each to length 1.

    A zero row stays zero. Raises BadInput unless 1 <= dimensions <= D.
    """
    if dimensions is not None:
        width = vectors.shape[1]
        if not 1 <= dimensions <= width:
            message = f"dimensions is {dimensions}, it must be 1 to {width}"
            raise BadInput(message, param="dimensions")
        vectors = vectors[:, :dimensions]
    wide = vectors.astype(np.float64)  # squares of the largest float32 values stay finite
    norms = np.sqrt(np.vecdot(wide, wide))
    wide /= np.maximum(norms, np.finfo(np.float64).tiny)[:, None]
    scaled: npt.NDArray[np.float32] = wide.astype(np.float32)
    return scaled


def softmax(logits: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Each row's (N, C) exp(x) / sum exp(x): no overflow, sums to 1."""
    exponentials = np.exp(logits.astype(np.float64) - logits.max(axis=1, keepdims=True))
    probabilities: npt.NDArray[np.float64] = exponentials / exponentials.sum(axis=1, keepdims=True)
    return probabilities


def cosines(
    vector: npt.NDArray[np.float32], others: npt.NDArray[np.float32]
) -> npt.NDArray[np.float64]:
    """(N,) cosines of a vector (D,) with the rows of others (N, D); 0 where one is zero."""
    rows = normalise(np.vstack([vector, others])).astype(np.float64)
    cosines: npt.NDArray[np.float64] = np.clip(rows[1:] @ rows[0], -1.0, 1.0)  # of rounding
    return cosines


def expected_score(logits: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Logits (N, C) of the scores from 1 to C -> their expectation (N,)."""
    expected: npt.NDArray[np.float64] = softmax(logits) @ np.arange(1.0, logits.shape[1] + 1)
    return expected

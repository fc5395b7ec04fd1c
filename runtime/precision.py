"""Vectors in fewer bits, with the names of sentence-transformers and Cohere."""

from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from heedful.runtime.errors import BadInput
from heedful.text.arrays import Floats

FewerBits = Literal["int8", "uint8", "binary", "ubinary"]
Precision = Literal["float32", FewerBits]
LARGEST = 127


def check_precision(precision: object) -> None:
    """Raise BadInput for an unknown one."""
    known = get_args(Precision)
    if precision not in known:
        raise BadInput(
            f"precision is {precision!r}: give one of {', '.join(known)}", param="precision"
        )


def as_precision(vectors: Floats, precision: Precision | Literal["float"]) -> npt.NDArray[Any]:
    """The vectors (N, D) in int8, uint8 (N, D), or a bit a value: binary (int8) and ubinary (uint8), (N, D / 8).

    int8 scales each vector by its largest value, so that it does not depend on the others: compare by cosine. uint8 is
    int8 + 128. A bit is 1 for a value above 0, and the first value is the highest bit: compare by Hamming distance.
    """
    if precision in ("float32", "float"):  # as sentence-transformers says, and as Cohere does
        return vectors
    if precision in ("int8", "uint8"):
        largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0)
        scaled = np.rint(vectors * (LARGEST / np.maximum(largest, np.finfo(np.float32).tiny)))
        shift, kind = (0, np.int8) if precision == "int8" else (128, np.uint8)
        return np.asarray(scaled + shift, kind)
    bits = np.packbits(vectors > 0, axis=1)
    return bits if precision == "ubinary" else np.asarray(bits.astype(np.int16) - 128, np.int8)

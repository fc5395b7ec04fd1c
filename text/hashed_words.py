"""Words -> rows of tables -> vectors of bytes, which the arc parser reads.

As in spaCy's `MultiHashEmbed`, each of four attributes of a word is hashed to four rows of its table, whose sum
represents it, so that unseen words have vectors too.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from thinc.api import NumpyOps

from heedful.text.arrays import Bytes, Doubles, Hashes, Ints
from heedful.text.tokenize import ATTRIBUTES

ROWS = 4
"""Rows to which an attribute's value is hashed."""
FIRST_SEED = 8
"""Seed of the first attribute's hash; the next attribute has the next seed."""
ZERO = 128
"""The byte that represents 0."""
PIECES = 2
"""Pieces of the maxout."""
MULTIPLICATIONS = 2**19
"""OpenBLAS takes a thread for each 2**18 of a product's multiplications: two from here on."""


def hashed_rows(attributes: Hashes, tables: Sequence[int]) -> Ints:
    """Hashes of the words' ATTRIBUTES (N, 4) -> rows (N, 4 ROWS) of tables of these sizes."""
    ops = NumpyOps()
    columns = np.ascontiguousarray(attributes.T)
    return np.concatenate(
        [
            ops.hash(column, FIRST_SEED + i) % count
            for i, (column, count) in enumerate(zip(columns, tables, strict=True))
        ],
        axis=1,
    ).astype(np.int64)


def product(rows: Doubles, matrix: Doubles) -> Doubles:
    """`rows` (N, D) @ `matrix` (D, E) -> (N, E), on one thread.

    OpenBLAS's other threads wait for the next product in a loop that takes the cores from the encoders: in a notebook
    `encode` took 3 times as long. A service sets OPENBLAS_NUM_THREADS before it imports numpy; a notebook cannot.
    """
    step = max(1, (MULTIPLICATIONS - 1) // matrix.size)
    parts = [rows[i : i + step] @ matrix for i in range(0, max(1, len(rows)), step)]
    return np.concatenate(parts)


class WordVectors:
    """Hashed attributes -> vectors of D bytes. A word's vector depends only on that word.

    It is computed in float64, so that rounding, which depends on the number of words, does not change a byte.
    """

    def __init__(self, arrays: Mapping[str, npt.NDArray[np.generic]]) -> None:
        """`arrays`: `table0` .. (rows, E) int8 and `table0_scales` .. (rows,); `mix` (4 E, PIECES D) int8 and
        `mix_scales` (PIECES D,); `bias` (PIECES D,); `gain` and `shift` of the LayerNorm (D,); `step`, a
        byte's value. Raises KeyError or ValueError for other arrays.
        """
        self._tables = [arrays[f"table{i}"] for i in range(len(ATTRIBUTES))]
        self._scales = [arrays[f"table{i}_scales"] for i in range(len(ATTRIBUTES))]
        mix, scales, self._bias, self._gain, self._shift = (
            arrays[name].astype(np.float64)
            for name in ("mix", "mix_scales", "bias", "gain", "shift")
        )
        self._mix = mix * scales
        self._step = float(arrays["step"])
        self.width = len(self._gain)
        if self._mix.shape != (sum(table.shape[1] for table in self._tables), PIECES * self.width):
            raise ValueError("the word tables do not fit together")

    def __call__(self, attributes: Hashes) -> Bytes:
        """(N, 4) -> (N, D)."""
        rows = hashed_rows(attributes, [len(table) for table in self._tables])
        sums = []
        for i, (table, scales) in enumerate(zip(self._tables, self._scales, strict=True)):
            indices = rows[:, ROWS * i : ROWS * (i + 1)]  # (N, ROWS)
            sums.append((table[indices] * scales[indices][..., None].astype(np.float64)).sum(1))
        pieces = product(np.concatenate(sums, axis=1), self._mix) + self._bias
        maxout = pieces.reshape(len(rows), PIECES, self.width).max(axis=1)
        maxout -= maxout.mean(axis=1, keepdims=True)
        maxout /= np.sqrt((maxout**2).mean(axis=1, keepdims=True) + 1e-5)  # as torch
        vectors: Doubles = maxout * self._gain + self._shift
        return (np.round(vectors / self._step) + ZERO).clip(0, 255).astype(np.uint8)

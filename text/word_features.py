"""Words -> the integers that the head scorer reads: rows of its tables.

As spaCy's `MultiHashEmbed` has them: each of four attributes of a word is hashed to four rows of its
table, whose sum stands for it, so that a word never met has a vector too; and one row of the table of
static vectors.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from spacy.attrs import NORM, ORTH, PREFIX, SHAPE, SUFFIX
from spacy.tokens import Doc
from thinc.api import NumpyOps

Ints = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]

PAD, UNKNOWN = 0, 1
SPECIAL = 2
"""Rows of the table of static vectors that hold no word."""
ATTRIBUTES = (NORM, PREFIX, SUFFIX, SHAPE)
ROWS = 4
"""Rows that a value of an attribute is hashed to."""
FEATURES = 1 + ROWS * len(ATTRIBUTES)


class WordFeatures:
    """Documents -> (N, FEATURES): the row of the static vector, and `ROWS` of each attribute's table."""

    def __init__(self, hashes: Hashes, tables: Sequence[tuple[int, int]]) -> None:
        """`hashes` (V,): spaCy's of the words with a static vector, in the order of their table, all
        different. `tables`: of each attribute's the number of rows and the seed of the hashes.
        Raises ValueError for no word.
        """
        if not len(hashes):
            raise ValueError("the table of words is empty")
        self.hashes, self.tables = hashes, tuple(tables)
        self._order = np.argsort(hashes)
        self._sorted = hashes[self._order]
        self._ops = NumpyOps()

    def __call__(self, docs: Sequence[Doc]) -> Ints:
        """The words of all `docs`, one behind the other."""
        found = np.concatenate([doc.to_array([ORTH, *ATTRIBUTES]) for doc in docs])  # (N, 5) uint64
        place = np.searchsorted(self._sorted, found[:, 0]).clip(max=len(self._sorted) - 1)
        known = self._sorted[place] == found[:, 0]
        rows = np.empty((len(found), FEATURES), np.int64)
        rows[:, 0] = np.where(known, self._order[place] + SPECIAL, UNKNOWN)
        for i, (count, seed) in enumerate(self.tables):
            values = np.ascontiguousarray(found[:, 1 + i])
            rows[:, 1 + ROWS * i : 1 + ROWS * (i + 1)] = self._ops.hash(values, seed) % count
        return rows


def pad(rows: Ints, lengths: Ints) -> Ints:
    """(N, FEATURES) of B documents of `lengths` (B,) -> (B, L, FEATURES), PAD behind a document's end."""
    padded = np.full((len(lengths), int(lengths.max()), rows.shape[1]), PAD, np.int64)
    padded[np.arange(padded.shape[1]) < lengths[:, None]] = rows
    return padded

"""Words and pairs of neighbouring words, hashed to buckets and weighted by TF-IDF.

`export.bag` builds a graph that computes the same from the ids that the encoder reads.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import sparse

from heedful.text import composition
from heedful.text.arrays import Doubles, Ints
from heedful.text.batch import Sentence

FACTORS = (2_654_435_761, 40_503_001)
"""A word k has the bucket FACTORS[0] k, a pair (j, k) FACTORS[0] j + FACTORS[1] (k + 1), modulo the buckets."""
SIGNATURE = composition.SIGNATURES ** np.arange(composition.SIGNATURE, dtype=np.int64)
COMPOSED = 2**20 - 3
"""Numbers that composed words can have, after those of the listed words."""
LEAST, MOST = 2**12, 2**18
"""Bounds of the number of buckets, eight for each term of the texts."""
LARGEST = 2**24
"""The largest table of buckets with a column for each class, in numbers."""


def word_keys(sentence: Sentence, listed: int) -> Ints:
    """(S,) a number for each word: its id below `listed`, or for a composed word `listed` and more."""
    if sentence.features is None:
        return sentence.ids
    composed = listed + sentence.features[:, -composition.SIGNATURE :] @ SIGNATURE % COMPOSED
    keys: Ints = np.where(
        sentence.ids < 0, composed[np.maximum(-1 - sentence.ids, 0)], sentence.ids
    )
    return keys


def terms(keys: Ints) -> Ints:
    """(2 S - 1,) the words and the pairs of neighbours, as numbers whose remainders are buckets."""
    first, second = FACTORS
    return np.concatenate([keys * first, keys[:-1] * first + (keys[1:] + 1) * second])


@dataclass(frozen=True, slots=True)
class Bag:
    """Inverse document frequencies (buckets,); 0 for a bucket of no text."""

    idf: Doubles

    @classmethod
    def fit(cls, texts: Sequence[Ints], *, classes: int) -> Self:
        """From the keys of each text, with few enough buckets for a table of that many classes."""
        text_terms = [np.unique(terms(keys)) for keys in texts]
        buckets = 8 * len(np.unique(np.concatenate(text_terms)))
        size = 2 ** int(np.ceil(np.log2(min(MOST, max(LEAST, buckets)))))
        while size * (classes + 1) > LARGEST and size > LEAST:
            size //= 2
        size -= 1
        filled = np.concatenate([np.unique(terms % size) for terms in text_terms])
        counts = np.bincount(filled, minlength=size)
        idf = np.log((1 + len(texts)) / (1 + counts)) + 1
        squares = np.where(counts, idf**2, 0.0).astype(np.float16)  # as a graph stores them
        return cls(np.sqrt(squares.astype(np.float64)))

    def features(self, texts: Sequence[Ints]) -> sparse.csr_matrix:
        """(N, buckets): count x idf, divided by the root of the text's sum of count x idf^2.

        Counts are not squared in that sum, so that a graph can add it up term by term.
        """
        rows, columns, values = [], [], []
        for row, keys in enumerate(texts):
            buckets = terms(keys) % len(self.idf)
            weights = self.idf[buckets]
            columns.append(buckets)
            values.append(weights / max(np.sqrt((weights**2).sum()), np.finfo(np.float32).tiny))
            rows.append(np.full(len(buckets), row))
        places = (np.concatenate(rows), np.concatenate(columns))
        return sparse.csr_matrix(
            (np.concatenate(values), places), shape=(len(texts), len(self.idf))
        )

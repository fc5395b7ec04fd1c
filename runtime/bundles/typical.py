"""typical.npz: the region of the training sentences, by which untypical inputs are recognised.

It holds centroids of vectors of training sentences and the distances of other training sentences from them: an input
that lies farther from its nearest centroid than nearly all of these is not typical.
"""

import io
import zipfile
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from heedful.runtime.answers import normalise
from heedful.text.arrays import Doubles, Floats

QUANTILES = 1001
"""Stored distances: the 0th, 0.1st .. 100th percentile."""


@dataclass(frozen=True, slots=True, eq=False)
class Typical:
    centroids: Floats  # (K, D), of length 1
    distances: Floats  # (QUANTILES,) 1 - cosine to the nearest centroid, ascending

    @classmethod
    def read(cls, content: bytes, dimension: int) -> Self:
        """Raises ValueError for another format or dimension."""
        try:
            with np.load(io.BytesIO(content)) as arrays:
                typical = cls(arrays["centroids"].astype(np.float32), arrays["distances"])
        except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(f"not an index of centroids: {error}") from error
        if typical.centroids.shape[1:] != (dimension,) or typical.distances.shape != (QUANTILES,):
            raise ValueError(
                f"has centroids of {typical.centroids.shape} and {typical.distances.shape} distances, "
                f"not (K, {dimension}) and {QUANTILES}"
            )
        return typical

    def to_bytes(self) -> bytes:
        """The file's bytes; centroids in float16."""
        file = io.BytesIO()
        arrays: dict[str, Any] = {
            "centroids": self.centroids.astype(np.float16),
            "distances": self.distances.astype(np.float32),
        }
        np.savez_compressed(file, **arrays)
        return file.getvalue()

    def share(self, vectors: Floats) -> Doubles:
        """(N,) share of training sentences that lie as far from their nearest centroid, or farther.

        `vectors` (N, W) begin with the sentence vector.
        """
        sentences = vectors[:, : self.centroids.shape[1]]
        nearer = np.searchsorted(self.distances, distances(sentences, self.centroids), side="left")
        share: Doubles = np.maximum(QUANTILES - 1 - nearer, 0) / (QUANTILES - 1)
        return share


def distances(vectors: Floats, centroids: Floats) -> Floats:
    """(N,) 1 - cosine of vectors (N, D) to the nearest of centroids (K, D) of length 1."""
    nearest: Floats = 1.0 - (normalise(vectors) @ centroids.T).max(axis=1)
    return nearest

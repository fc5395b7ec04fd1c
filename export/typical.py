"""An index of training sentences: centroids of half of them, and the distances of the other half to these."""

import numpy as np
from sklearn.cluster import KMeans

from heedful.export.errors import ExportError
from heedful.runtime.answers import normalise
from heedful.runtime.bundles.typical import QUANTILES, Typical, distances
from heedful.text.arrays import Floats

CENTROIDS = 32
LEAST = 4 * CENTROIDS
"""Training sentences that an index needs."""
SEED = 0


def typical(vectors: Floats) -> Typical:
    """The index from vectors (N, D) of training sentences. Raises ExportError for too few of them."""
    if len(vectors) < LEAST:
        raise ExportError(
            f"{len(vectors)} training sentences are too few for an index of {CENTROIDS} centroids"
        )
    rows = np.random.default_rng(SEED).permutation(len(vectors))
    first, second = np.array_split(normalise(vectors[rows]), 2)
    centres = KMeans(CENTROIDS, n_init=1, random_state=SEED).fit(first).cluster_centers_
    centroids = normalise(np.asarray(centres, np.float32)).astype(np.float16).astype(np.float32)
    measured = distances(second, centroids)
    return Typical(
        centroids, np.quantile(measured, np.linspace(0, 1, QUANTILES)).astype(np.float32)
    )

"""Groups of examples that lie near each other, so that a batch holds what is hard to tell apart."""

from typing import Any

import numpy as np
import numpy.typing as npt

from heedful.text.arrays import Ints


def neighbourhoods(vectors: npt.NDArray[Any], size: int, rng: np.random.Generator) -> list[Ints]:
    """(N, D) -> groups of at most `size` rows that lie near each other: halved again and again along a
    random direction between two of their rows (a random projection tree).
    """
    pending, found = [np.arange(len(vectors))], []
    while pending:
        group = pending.pop()
        if len(group) <= size:
            found.append(group)
            continue
        first, second = vectors[rng.choice(group, 2, replace=False)].astype(np.float32)
        order = np.argsort(vectors[group].astype(np.float32) @ (first - second), kind="stable")
        pending += np.array_split(group[order], 2)
    return found

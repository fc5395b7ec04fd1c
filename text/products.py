"""Products of matrices on one thread.

For a large product OpenBLAS wakes a thread a core, and these then wait for the next one in a loop that takes the cores
from the encoders. A service sets OPENBLAS_NUM_THREADS to 1 before it imports numpy; a notebook has imported it already.
"""

from typing import TypeVar

import numpy as np
import numpy.typing as npt

F = TypeVar("F", np.float32, np.float64)

MULTIPLICATIONS = 2**19
"""OpenBLAS takes as many threads as a product has 2**18 multiplications: one below this limit."""


def product(rows: npt.NDArray[F], matrix: npt.NDArray[F]) -> npt.NDArray[F]:
    """`rows` (N, D) @ `matrix` (D, E) -> (N, E)."""
    made = np.empty((len(rows), matrix.shape[1]), rows.dtype)
    step = max(1, (MULTIPLICATIONS - 1) // matrix.size)
    for start in range(0, len(rows), step):
        part = slice(start, start + step)
        np.matmul(rows[part], matrix, out=made[part])
    return made

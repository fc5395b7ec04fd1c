"""Types of numpy arrays by their values, for all packages. Comments at their use give the shapes."""

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Hashes = npt.NDArray[np.uint64]
AnyFloats = npt.NDArray[np.floating[Any]]
"""Floats of any precision."""

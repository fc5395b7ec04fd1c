"""Arrays that take long to compute, kept in a file named by a digest of what they follow from."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from heedful.files.atomic import write_arrays

Arrays = Mapping[str, npt.NDArray[Any]]


def cached(
    folder: Path, key: Iterable[bytes], make: Callable[[], Arrays], *, prefix: str = ""
) -> dict[str, npt.NDArray[Any]]:
    """What `make` gave when it was first called with this `key`, whose parts are read one after the other.

    An interrupted call leaves nothing. Raises OSError where the disk is full.
    """
    digest = hashlib.sha256()
    for part in key:
        digest.update(part)
    file = folder / f"{prefix}{digest.hexdigest()[:24]}.npz"
    if not file.exists():
        write_arrays(file, **make())
    with np.load(file) as archive:
        return dict(archive)

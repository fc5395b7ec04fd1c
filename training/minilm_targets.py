"""Vectors of all-MiniLM-L6-v2 as targets, cached for each set of texts."""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from heedful.files.atomic import write_arrays
from heedful.text.arrays import Floats
from heedful.training import minilm

SIZE = 384
PART = 16_384
"""Texts of a file in the cache."""


def vectors(texts: Sequence[str], cache: Path, device: str) -> npt.NDArray[np.float16]:
    """(N, SIZE) float16, each of length 1; distinct texts are encoded once, on all cores.

    Every PART texts have a file in the cache: an interrupted run continues after the last of them.
    """
    index = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    distinct = list(index)
    parts = [_part(distinct[i : i + PART], cache, device) for i in range(0, len(distinct), PART)]
    found: npt.NDArray[np.float16] = np.concatenate(parts)
    return found[[index[text] for text in texts]]


def _part(texts: list[str], cache: Path, device: str) -> npt.NDArray[np.float16]:
    kept = file(texts, cache)
    if not kept.exists():
        write_arrays(kept, vectors=_encode(texts, device).astype(np.float16))
    with np.load(kept) as archive:
        loaded: npt.NDArray[np.float16] = archive["vectors"]
    return loaded


def file(distinct: Sequence[str], cache: Path) -> Path:
    """The cache file for these texts in this order."""
    digest = hashlib.sha256(minilm.PACKAGE.encode())
    for text in distinct:
        digest.update(text.encode() + b"\0")
    return cache / f"teacher-{digest.hexdigest()[:24]}.npz"


def _encode(texts: list[str], device: str) -> Floats:
    threads = torch.get_num_threads()
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    try:
        return minilm.unit_vectors(minilm.load(device), texts)
    finally:
        torch.set_num_threads(threads)

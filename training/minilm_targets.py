"""Vectors of all-MiniLM-L6-v2 as targets, kept by the text that they are of."""

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
    """(N, SIZE) float16, each of length 1; a text that the cache holds is not encoded again.

    Every PART new texts get a file in `cache/teacher`: an interrupted run continues after the last of them.
    """
    folder = cache / "teacher"
    kept = _stored(folder)
    wanted = [_key(text) for text in texts]
    places = {key: i for i, key in enumerate(kept)}
    new = {key: text for key, text in zip(wanted, texts, strict=True) if key not in places}
    missing = list(new)
    found = np.empty((len(kept) + len(missing), SIZE), np.float16)
    row = 0
    for file in _files(folder):
        with np.load(file) as archive:
            part = archive["vectors"]
        found[row : row + len(part)] = part
        row += len(part)
    for start in range(0, len(missing), PART):
        keys = missing[start : start + PART]
        part = _encode([new[key] for key in keys], device).astype(np.float16)
        write_arrays(
            folder / f"{len(_files(folder)):05}.npz", keys=np.array(keys, np.uint64), vectors=part
        )
        found[row : row + len(part)] = part
        row += len(part)
    places |= {key: len(kept) + i for i, key in enumerate(missing)}
    return found[[places[key] for key in wanted]]


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.npz"))


def _stored(folder: Path) -> list[int]:
    """The keys of the stored texts, in the order of their vectors."""
    found: list[int] = []
    for file in _files(folder):
        with np.load(file) as archive:
            found += archive["keys"].tolist()
    return found


def _key(text: str) -> int:
    digest = hashlib.blake2b(f"{minilm.PACKAGE}\0{text}".encode(), digest_size=8).digest()
    return int.from_bytes(digest)


def _encode(texts: list[str], device: str) -> Floats:
    threads = torch.get_num_threads()
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    try:
        return minilm.unit_vectors(minilm.load(device, half=True), texts)
    finally:
        torch.set_num_threads(threads)

"""Sentence vectors of the teachers, cached by text."""

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from heedful.files.atomic import write_arrays
from heedful.text.arrays import Floats
from heedful.training import teachers
from heedful.training.errors import DataMissing
from heedful.training.teachers import unit

PART = 4_096
"""Texts in one file of the cache."""
FILE = ".npy"
"""Suffix of a teacher that is a file of vectors, which `keep` puts into the cache."""


def targets(
    names: Sequence[str], texts: Sequence[str], cache: Path, device: str
) -> npt.NDArray[np.float16]:
    """(N, D) float16, each of length 1, in the axes of the first teacher and of its size.

    With two teachers, the second's vectors are reduced to D principal components, rotated to be as near as possible to
    the first's (orthogonal Procrustes, Schoenemann 1966), and added to these: a cosine is then about the mean of both
    teachers' cosines, and a query can still search an index of the first's vectors.
    """
    vectors = [stored_vectors(name, texts, cache, device) for name in names]
    if len(vectors) == 1:
        return vectors[0]
    first, second = (rows.astype(np.float32) for rows in vectors)
    return unit(first + rotated(second, first)).astype(np.float16)


def rotated(vectors: Floats, axes: Floats) -> Floats:
    """(N, E), E >= D -> (N, D): its D principal components, rotated to be as near as possible to `axes` (N, D)."""
    _, components = np.linalg.eigh(vectors.T @ vectors)
    part = vectors @ components[:, : -axes.shape[1] - 1 : -1]
    left, _, right = np.linalg.svd(part.T @ axes)
    result: Floats = part @ (left @ right)
    return result


def stored_vectors(
    name: str,
    texts: Sequence[str],
    cache: Path,
    device: str,
    progress: Callable[[int], None] = lambda _: None,
) -> npt.NDArray[np.float16]:
    """(N, D) float16 vectors of one teacher, of length 1; a text that the cache holds is not encoded again.

    Every PART new texts are written to a file of the cache, and an interrupted run continues after the last file.
    `progress` is called with the number of new texts that are left. Raises DataMissing where the teacher is not
    installed, or is a file of vectors that lacks one of the texts; ConfigError where it cannot be read.
    """
    store = _Store.of(name, cache)
    missing = store.missing(texts)
    if missing and name.endswith(FILE):
        raise DataMissing(f"{name} has no vector of the text {missing[0][:80]!r}")
    teacher = teachers.load(name, device, half=True) if missing else None
    progress(len(missing))
    for start in range(0, len(missing), PART):
        part = missing[start : start + PART]
        assert teacher is not None
        store.add(part, _encode(teacher, part))
        progress(len(missing) - start - len(part))
    return store.vectors(texts)


def keep(name: str, texts: Sequence[str], vectors: Floats, cache: Path) -> None:
    """Put the vectors (N, D) of a teacher that is a file into the cache, for `stored_vectors`."""
    store = _Store.of(name, cache)
    by_text = dict(zip(texts, unit(vectors.astype(np.float32)), strict=True))
    missing = store.missing(texts)
    for start in range(0, len(missing), PART):
        part = missing[start : start + PART]
        store.add(part, np.array([by_text[text] for text in part]))


class _Store:
    """The files of one teacher's vectors, and the place of each text in them."""

    def __init__(self, folder: Path, identity: str) -> None:
        self._folder, self._identity = folder, identity
        self._places: dict[int, int] = {}
        self._parts: list[npt.NDArray[np.float16]] = []
        self._files = 0
        for file in sorted(folder.glob("*.npz")):
            with np.load(file) as archive:
                self._append(archive["keys"].tolist(), archive["vectors"])
            self._files += 1

    @classmethod
    def of(cls, name: str, cache: Path) -> "_Store":
        """The store of a teacher. Raises DataMissing."""
        identity = teachers.identity(name)
        if name == teachers.MINILM:
            return cls(cache / "teacher", identity)
        short = name if name == teachers.MPNET else identity[:16]
        return cls(cache / f"teacher-{short}", identity)

    def missing(self, texts: Sequence[str]) -> list[str]:
        """The distinct texts that have no vector."""
        return [text for text in dict.fromkeys(texts) if self._key(text) not in self._places]

    def add(self, texts: Sequence[str], vectors: Floats) -> None:
        """Write a file of new vectors."""
        keys, rounded = [self._key(text) for text in texts], vectors.astype(np.float16)
        file = self._folder / f"{self._files:05}.npz"
        while file.exists():  # another process writes to the cache too
            self._files += 1
            file = self._folder / f"{self._files:05}.npz"
        write_arrays(file, keys=np.array(keys, np.uint64), vectors=rounded)
        self._append(keys, rounded)

    def vectors(self, texts: Sequence[str]) -> npt.NDArray[np.float16]:
        """(N, D) the vectors of texts, none of which is `missing`."""
        stored = np.concatenate(self._parts) if self._parts else np.empty((0, 0), np.float16)
        return stored[[self._places[self._key(text)] for text in texts]]

    def _append(self, keys: list[int], vectors: npt.NDArray[np.float16]) -> None:
        start = sum(map(len, self._parts))
        self._places |= {key: start + i for i, key in enumerate(keys)}
        self._parts.append(vectors)

    def _key(self, text: str) -> int:
        digest = hashlib.blake2b(f"{self._identity}\0{text}".encode(), digest_size=8).digest()
        return int.from_bytes(digest)


def _encode(teacher: teachers.Teacher, texts: list[str]) -> Floats:
    threads = torch.get_num_threads()
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    try:
        return teacher.unit_vectors(texts)
    finally:
        torch.set_num_threads(threads)

"""Sentence vectors of the teachers, kept by the text that they are of."""

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from heedful.files.atomic import write_arrays
from heedful.text.arrays import Floats
from heedful.training import minilm, mpnet
from heedful.training.errors import ConfigError

SIZE = minilm.SIZE
"""Of MiniLM's vectors and of a student's."""
PART = 4_096
"""Texts of a file in the cache."""
TEACHERS = {minilm.NAME: minilm, mpnet.NAME: mpnet}


def targets(
    teachers: Sequence[str], texts: Sequence[str], cache: Path, device: str
) -> npt.NDArray[np.float16]:
    """(N, SIZE) float16, each of length 1, in the axes of the first teacher, which is MiniLM.

    Of two teachers, the second's vectors lose all but their SIZE principal components, are turned so that they lie as
    near to the first's as a rotation can bring them (orthogonal Procrustes, Schoenemann 1966), and are added to these:
    a cosine is then about the mean of both teachers' cosines, and a query can still search an index of the first's.
    """
    vectors = [stored_vectors(name, texts, cache, device) for name in teachers]
    if len(vectors) == 1:
        return vectors[0]
    first, second = (one.astype(np.float32) for one in vectors)
    both = first + rotated(second, first)
    unit: Floats = both / np.linalg.norm(both, axis=1, keepdims=True)
    return unit.astype(np.float16)


def rotated(vectors: Floats, axes: Floats) -> Floats:
    """(N, E), E >= D -> (N, D): its D principal components, rotated to lie as near to `axes` (N, D) as they can."""
    _, components = np.linalg.eigh(vectors.T @ vectors)
    part = vectors @ components[:, : -axes.shape[1] - 1 : -1]
    left, _, right = np.linalg.svd(part.T @ axes)
    result: Floats = part @ (left @ right)
    return result


def stored_vectors(
    teacher: str,
    texts: Sequence[str],
    cache: Path,
    device: str,
    progress: Callable[[int], None] = lambda _: None,
) -> npt.NDArray[np.float16]:
    """(N, D) float16 vectors of one teacher, of length 1; a text that the cache holds is not encoded again.

    Every PART new texts get a file in the cache: an interrupted run continues after the last of them. `progress` is
    told how many new texts are still to come. Raises DataMissing where the teacher is not installed, ConfigError for
    another name.
    """
    if teacher not in TEACHERS:
        raise ConfigError(f"distillation.teachers: {teacher!r} is none of {', '.join(TEACHERS)}")
    model = TEACHERS[teacher]
    folder = cache / ("teacher" if teacher == minilm.NAME else f"teacher-{teacher}")
    keys: list[int] = []
    parts = [np.empty((0, model.SIZE), np.float16)]
    files = sorted(folder.glob("*.npz"))
    for file in files:
        with np.load(file) as archive:
            keys += archive["keys"].tolist()
            parts.append(archive["vectors"])
    places = {key: i for i, key in enumerate(keys)}
    wanted = [_key(model.PACKAGE, text) for text in texts]
    new = {key: text for key, text in zip(wanted, texts, strict=True) if key not in places}
    missing = list(new)
    for start in range(0, len(missing), PART):
        progress(len(missing) - start)
        chosen = missing[start : start + PART]
        part = _encode(teacher, [new[key] for key in chosen], device).astype(np.float16)
        file = folder / f"{len(files) + start // PART:05}.npz"
        write_arrays(file, keys=np.array(chosen, np.uint64), vectors=part)
        parts.append(part)
    progress(0)
    places |= {key: len(keys) + i for i, key in enumerate(missing)}
    return np.concatenate(parts)[[places[key] for key in wanted]]


def _key(package: str, text: str) -> int:
    digest = hashlib.blake2b(f"{package}\0{text}".encode(), digest_size=8).digest()
    return int.from_bytes(digest)


def _encode(teacher: str, texts: list[str], device: str) -> Floats:
    threads = torch.get_num_threads()
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    try:
        return minilm.unit_vectors(TEACHERS[teacher].load(device, half=True), texts)
    finally:
        torch.set_num_threads(threads)

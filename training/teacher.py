"""Vectors of all-MiniLM-L6-v2 to learn from: computed once for a set of texts, and kept."""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from training import minilm
from training.files import write_whole

SIZE = 384


def vectors(texts: Sequence[str], cache: Path, device: str) -> npt.NDArray[np.float16]:
    """(N, SIZE) float16, each of length 1; every distinct text is encoded once, on every core there is."""
    index = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    digest = hashlib.sha256(minilm.PACKAGE.encode())
    for text in index:
        digest.update(text.encode() + b"\0")
    file = cache / f"teacher-{digest.hexdigest()[:24]}.npz"
    if not file.exists():
        threads = torch.get_num_threads()
        torch.set_num_threads(len(os.sched_getaffinity(0)))
        try:
            table = minilm.unit_vectors(minilm.load(device), list(index)).astype(np.float16)
        finally:
            torch.set_num_threads(threads)
        _keep(file, table)
    with np.load(file) as archive:
        kept: npt.NDArray[np.float16] = archive["vectors"]
    return kept[[index[text] for text in texts]]


def _keep(file: Path, table: npt.NDArray[np.float16]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)

    def write(part: Path) -> None:
        with part.open("wb") as out:  # given a name, numpy would append .npz to it
            np.savez(out, vectors=table)

    write_whole(file, write)

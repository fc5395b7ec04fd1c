"""A bundle's encoder.onnx with no tree, as bare as it can be: what every peer runs."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnxruntime

BATCH, TIMEOUT = 32, 0.002
"""Most sentences that a peer may put together, and the seconds that it may wait for them."""
PORT, WORKERS = int(os.environ.get("PORT", 0)), int(os.environ.get("WORKERS", 1))


class Encoder:
    """Words between white space, no check of anything. One thread: each worker has one."""

    def __init__(self) -> None:
        bundle = Path(os.environ["BUNDLE"])
        words = (bundle / "vocab.txt").read_text("utf-8").splitlines()
        self._ids = {word: i for i, word in enumerate(words)}
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            bundle / "encoder.onnx", options, providers=["CPUExecutionProvider"]
        )

    def __call__(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """(N, D) vectors of length 1."""
        rows = [[self._ids.get(word, 1) for word in text.lower().split()] for text in texts]
        lengths = np.array([len(row) for row in rows], np.int64)
        ids = np.zeros((len(rows), lengths.max()), np.int64)
        for i, row in enumerate(rows):
            ids[i, : len(row)] = row
        (vectors,) = self._session.run(None, {"ids": ids, "lengths": lengths})
        unit: npt.NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit

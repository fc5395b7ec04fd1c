"""A bundle's encoder.onnx without a tree, as bare as possible: every peer runs it."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnxruntime

BATCH, TIMEOUT = 32, 0.002
"""Maximum batch size of a peer, and how many seconds it may wait to fill one."""
NONE_COMPOSED = np.zeros((1, 32), np.int64)
"""Features of composed words (K, F): here all unlisted words are one."""
PORT, WORKERS = int(os.environ.get("PORT", 0)), int(os.environ.get("WORKERS", 1))


class Encoder:
    """Splits at white space and checks nothing. One thread, as in each worker."""

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
        feeds = {"ids": ids, "lengths": lengths, "features": NONE_COMPOSED}
        (vectors,) = self._session.run(None, feeds)
        unit: npt.NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit

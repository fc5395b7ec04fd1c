"""Counts the inputs that lie farther out than nearly all training sentences: drift, for Prometheus.

The distances of one vector from the centroids cost as much as those of thirty. So vectors are collected, of a
quarter of a second at most, and answers do not wait for them.
"""

import asyncio
from collections import defaultdict

import numpy as np

from heedful.runtime.loaded_model import LoadedModel
from heedful.runtime.observer import Observer
from heedful.text.arrays import Floats

ROWS, SECONDS = 64, 0.25
"""Vectors that are collected, and how long."""


class OutOfDistributionCounter:
    """For the event loop's thread only."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        # By how many texts make an input.
        self._waiting: defaultdict[LoadedModel, dict[int, list[Floats]]] = defaultdict(dict)
        self._rows = 0
        self._timer: asyncio.TimerHandle | None = None

    def add(self, model: LoadedModel, vectors: Floats, texts_per_row: int) -> None:
        """Vectors (M, D) of M / `texts_per_row` inputs that were answered. Nobody may change them any more."""
        if model.typical is None:
            return
        self._waiting[model].setdefault(texts_per_row, []).append(vectors)
        self._rows += len(vectors)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(SECONDS, self.flush)
        if self._rows >= ROWS:  # soon, but the answer goes first
            self._timer.cancel()
            self._timer = asyncio.get_running_loop().call_later(0, self.flush)

    def flush(self) -> None:
        """Count what was collected."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, self._rows = dict(self._waiting), 0
        self._waiting.clear()
        for model, added in waiting.items():
            assert model.typical is not None
            assert model.card.typical is not None
            count = 0
            for step, vectors in added.items():
                shares = model.typical.share(np.concatenate(vectors)).reshape(-1, step)
                count += int((shares < model.card.typical.threshold).any(axis=1).sum())
            self._observer.untypical(model.card.name, count)

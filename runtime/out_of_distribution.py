"""Counts the inputs that lie farther out than nearly all training sentences: drift, for Prometheus.

The distances of one vector from the centroids cost as much as those of thirty. So the counter collects the vectors of
answered inputs and compares ROWS of them at a time, between which the event loop goes on.
"""

import asyncio
from collections import defaultdict

import numpy as np

from heedful.runtime.loaded_model import LoadedModel
from heedful.runtime.observer import Observer
from heedful.text.arrays import Floats

ROWS, SECONDS = 64, 0.25
"""Vectors that are compared at a time, and the interval between two counts."""


class OutOfDistributionCounter:
    """Only the event loop's thread may use it."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self.answered: list[tuple[LoadedModel, Floats, int]] = []
        """Models, vectors (M, D) that no longer change, and the number of vectors of an input."""

    async def run(self) -> None:
        """Count the answered inputs, every SECONDS until the task is cancelled."""
        while True:
            await asyncio.sleep(SECONDS)
            await self.count()

    async def count(self) -> None:
        """Count the inputs answered since the last call."""
        answered, self.answered[:] = self.answered[:], []
        vectors: defaultdict[tuple[LoadedModel, int], list[Floats]] = defaultdict(list)
        for model, answer_vectors, texts_per_row in answered:
            vectors[model, texts_per_row].append(answer_vectors)
        for (model, texts_per_row), parts in vectors.items():
            rows = np.concatenate(parts)
            for begin in range(0, len(rows), ROWS):
                self._count(model, rows[begin : begin + ROWS], texts_per_row)
                await asyncio.sleep(0)

    def _count(self, model: LoadedModel, vectors: Floats, texts_per_row: int) -> None:
        if model.typical is None or model.card.typical is None:
            return
        shares = model.typical.share(vectors).reshape(-1, texts_per_row)
        is_out = (shares < model.card.typical.threshold).any(axis=1)
        self._observer.untypical(model.card.name, int(is_out.sum()))

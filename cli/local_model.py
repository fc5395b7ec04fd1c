"""The model that a command scores: one of a running service, or a bundle's folder loaded here."""

import asyncio
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import numpy.typing as npt

from heedful.app import settings
from heedful.runtime.card import CARD, Card
from heedful.runtime.inputs import Inputs
from heedful.runtime.model_registry import Task as ServiceTask
from heedful.runtime.service import Options, Service
from heedful.training.evaluate import Server
from heedful.training.tasks.base import Example, Task

GROUP = 256
"""Texts embedded at a time."""
TIMEOUT = 60
"""Seconds to wait for a service's answer."""


class LocalModel:
    """One bundle in this process. It answers as a service would, without HTTP."""

    def __init__(self, name: str, service: Service, runner: asyncio.Runner) -> None:
        self.model = name
        self.service = service
        self.run = runner.run

    def predict(self, examples: Sequence[Example], task: Task) -> npt.NDArray[Any]:
        """Classes, scores from 1 to 5, or cosines. A class that the task does not know is -1."""
        if task.kind == "embedding":
            vectors = self.embed([text for example in examples for text in example.texts])
            cosines: npt.NDArray[Any] = (vectors[0::2] * vectors[1::2]).sum(axis=1)
            return cosines
        if task.kind == "relatedness":
            bound = self.service.bind("relatedness", self.model)
            return self.run(bound.relatedness(_inputs(examples), truncate=True)).value
        known = {label: i for i, label in enumerate(task.labels)}
        classes = np.array([known.get(label, -1) for label in self.card.labels])
        found: npt.NDArray[Any] = classes[self.logits(examples).argmax(axis=1)]
        return found

    @property
    def card(self) -> Card:
        return self.service.cards[self.model]

    def logits(self, examples: Sequence[Example]) -> npt.NDArray[Any]:
        """(N, C) the logits that the service's probabilities are the softmax of, by the card's labels."""
        task: ServiceTask = "nli" if len(examples[0].texts) == 2 else "classify"
        bound = self.service.bind(task, self.model)
        return self.run(bound.classify(_inputs(examples), truncate=True, raw=True)).value

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """(N, D) vectors of length 1."""
        bound = self.service.bind("embed", self.model)
        # Texts are cut to the model's length, as they were in training.
        groups = (texts[start : start + GROUP] for start in range(0, len(texts), GROUP))
        inputs = map(Inputs.from_texts, groups)
        found = [self.run(bound.embed(one, truncate=True, normalize=True)) for one in inputs]
        return np.concatenate([one.value for one in found])


def _inputs(examples: Sequence[Example]) -> Inputs:
    texts = [text for example in examples for text in example.texts]
    paths = [f"text {i}" for i in range(1, len(texts) + 1)]
    return Inputs(texts, paths, texts_per_row=len(texts) // len(examples))


@contextmanager
def open_model(model: str, *, url: str, parser: str) -> Iterator[Server | LocalModel]:
    """Open a bundle's folder, or the bundle of that name which the service at `url` serves.

    Raises StartupError if the folder's bundle cannot be loaded.
    """
    folder = Path(model)
    if not (folder / CARD).is_file():
        with httpx.Client(timeout=TIMEOUT) as client:
            yield Server(url, model, client)
        return
    with open_folder(folder, parser) as local:
        yield local


@contextmanager
def open_folder(folder: Path, parser: str) -> Iterator[LocalModel]:
    """Load one bundle, with the device and cache that the settings give. Raises StartupError."""
    folder = folder.resolve()
    with tempfile.TemporaryDirectory() as models, asyncio.Runner() as runner:
        (Path(models) / folder.name).symlink_to(folder)
        chosen = settings.load(models=models, parser=parser)
        options = Options(
            chosen.models, chosen.parser, chosen.device, cache_items=chosen.cache_items
        )
        service = Service(options)
        runner.run(service.start())
        try:
            yield LocalModel(folder.name, service, runner)
        finally:
            runner.run(service.stop(timeout=0))

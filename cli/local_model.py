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
from heedful.runtime.card import CARD
from heedful.runtime.service import Options, Service, normalise
from heedful.training.evaluate import Server
from heedful.training.tasks.base import Example, Task

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
        pairs: Any = [example.texts for example in examples]
        options: Any = {"model": self.model, "truncate": True}  # training cut its texts as well
        if task.kind == "relatedness":
            return self.run(self.service.relatedness(pairs, **options)).value
        if task.kind == "embedding":
            first, second = (self.embed(side) for side in zip(*pairs, strict=True))
            cosines: npt.NDArray[Any] = (first * second).sum(axis=1)
            return cosines
        if task.kind == "nli":
            result = self.run(self.service.nli(pairs, **options))
        else:
            texts = [example.texts[0] for example in examples]
            result = self.run(self.service.classify(texts, **options))
        known = {label: i for i, label in enumerate(task.labels)}
        classes = np.array([known.get(label, -1) for label in result.card.labels])
        found: npt.NDArray[Any] = classes[result.value.argmax(axis=1)]
        return found

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """(N, D) vectors of length 1."""
        result = self.run(self.service.embed(texts, model=self.model, truncate=True))
        return normalise(result.value)


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
            runner.run(service.stop(grace=0))

"""The model that a command scores: a model of a running service, or a bundle's folder loaded in this process."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import numpy.typing as npt

from heedful.library.load import load
from heedful.library.model import Model, Question
from heedful.runtime.bundles.card import CARD, Card
from heedful.runtime.inputs import Inputs
from heedful.runtime.model_registry import Task as ServiceTask
from heedful.text.arrays import Floats
from heedful.training.data import class_numbers
from heedful.training.errors import ConfigError
from heedful.training.tasks.base import Example, Task
from tools.scoring import BATCH, Server

TIMEOUT = 60
"""Seconds to wait for a service's answer."""


@dataclass(frozen=True, slots=True)
class LocalModel:
    """One bundle in this process. It answers as a service would, without HTTP."""

    loaded: Model

    @property
    def card(self) -> Card:
        return self.loaded.card

    def labels(self, task: Task) -> tuple[str, ...]:
        """The labels of its card; none where the task has none."""
        return self.card.labels if task.labels else ()

    def predict(self, examples: Sequence[Example], task: Task) -> npt.NDArray[Any]:
        """Classes, scores from 1 to 5, or cosines. A class that the task does not know is -1."""
        if task.kind == "embedding":
            vectors = self.embed([text for example in examples for text in example.texts])
            cosines: npt.NDArray[Any] = (vectors[0::2] * vectors[1::2]).sum(axis=1)
            return cosines
        if task.kind == "relatedness":
            return self.loaded.relatedness([example.texts for example in examples])
        classes = class_numbers(self.card.labels, task.labels)
        answers: npt.NDArray[Any] = classes[self.logits(examples).argmax(axis=1)]
        return answers

    def logits(self, examples: Sequence[Example]) -> npt.NDArray[Any]:
        """(N, C) the logits of the card's labels; the service's probabilities are their softmax."""
        texts = [text for example in examples for text in example.texts]
        paths = [f"text {i}" for i in range(1, len(texts) + 1)]
        inputs = Inputs(texts, paths, texts_per_row=len(texts) // len(examples))
        task: ServiceTask = "nli" if inputs.texts_per_row == 2 else "classify"
        return self.loaded.answer(Question(task, {"truncate": True, "raw": True}), inputs)

    def ordered_logits(
        self, examples: Sequence[Example], labels: Sequence[str]
    ) -> npt.NDArray[Any]:
        """(N, C) the logits in the order of `labels`. Raises ConfigError where the model has other labels."""
        if sorted(self.card.labels) != sorted(labels):
            raise ConfigError(
                f"{self.card.name} has the labels {', '.join(self.card.labels)}, "
                f"its task {', '.join(labels)}"
            )
        order = [self.card.labels.index(label) for label in labels]
        starts = range(0, len(examples), BATCH)
        logits = [self.logits(examples[start : start + BATCH]) for start in starts]
        return np.concatenate(logits)[:, order]

    def embed(self, texts: Sequence[str]) -> Floats:
        """(N, D) vectors of length 1. Texts are cut to the model's length, as they were in training."""
        return self.loaded.encode(texts)


@contextmanager
def open_model(model: str, *, url: str, parser: str | None) -> Iterator[Server | LocalModel]:
    """Open a bundle's folder, or the bundle of that name which the service at `url` serves.

    Raises StartupError if the folder's bundle cannot be loaded, and ConfigError for a path that holds none.
    """
    folder = Path(model)
    if not (folder / CARD).is_file():
        if os.sep in model:  # a model's name has no separator
            raise ConfigError(
                f"{model} is no bundle's folder, it holds no {CARD}: name a folder such as bundles/ms-san-sst2, or a "
                "served model by its name"
            )
        with httpx.Client(timeout=TIMEOUT) as client:
            yield Server(url, model, client)
        return
    with open_folder(folder, parser) as local:
        yield local


@contextmanager
def open_folder(folder: Path, parser: str | None) -> Iterator[LocalModel]:
    """Load one bundle on the CPU, by default with the parser that `heedful.load` takes.

    Raises StartupError, also where its golden vectors moved far.
    """
    with load(folder, parser=parser, device="cpu") as model:
        model.check_golden()
        yield LocalModel(model)

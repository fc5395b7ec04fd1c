"""Score a model, one in this process or one served over HTTP: its answers against a split's labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import httpx
import numpy as np
import numpy.typing as npt
from rich.progress import track

from heedful.files.atomic import write_json
from heedful.text.arrays import Floats
from heedful.training import checkpoint
from heedful.training.data import class_numbers, labels, subsample
from heedful.training.errors import ConfigError, TrainingError
from heedful.training.metrics import METRICS, Score
from heedful.training.tasks.base import UNLABELLED, Example, Task

BATCH = 64
TRAIN_ROWS = 10_000


class Predictor(Protocol):
    """A model that answers examples."""

    def predict(self, examples: Sequence[Example], task: Task) -> npt.NDArray[Any]:
        """(N,) the answers that the metrics of the task's kind compare with the labels."""


@dataclass(frozen=True, slots=True)
class Server:
    """A running service and the name of one of its models."""

    url: str
    model: str
    client: httpx.Client

    def predict(self, examples: Sequence[Example], task: Task) -> npt.NDArray[Any]:
        """Classes, scores from 1 to 5, or cosines. A class that the task does not know is -1.

        Raises TrainingError with the service's message for an error.
        """
        if task.kind == "relatedness":
            pairs = [dict(zip(("a", "b"), example.texts, strict=True)) for example in examples]
            return np.array(self._post("/relatedness", {"pairs": pairs})["scores"])
        if task.kind == "embedding":
            first, second = (
                self.embed(side)
                for side in zip(*(example.texts for example in examples), strict=True)
            )
            cosines: npt.NDArray[Any] = (first * second).sum(axis=1)
            return cosines
        if task.kind == "nli":
            sides = ("premise", "hypothesis")
            pairs = [dict(zip(sides, example.texts, strict=True)) for example in examples]
            answers = [
                result["label"] for result in self._post("/nli", {"pairs": pairs})["results"]
            ]
        else:
            inputs = [example.texts[0] for example in examples]
            ranked = self._post("/classify", {"inputs": inputs, "top_k": 1})
            answers = [best["label"] for (best,) in ranked]
        return class_numbers(answers, task.labels)

    def labels(self, task: Task) -> tuple[str, ...]:
        """The labels of the served model, none where the task has none. Raises TrainingError."""
        if task.kind == "nli":
            pairs = [{"premise": "a", "hypothesis": "a"}]
            return tuple(self._post("/nli", {"pairs": pairs})["results"][0]["scores"])
        if task.kind == "classification":
            return tuple(best["label"] for best in self._post("/classify", {"inputs": "a"}))
        return ()

    def embed(self, texts: Sequence[str]) -> Floats:
        """(N, D) vectors of length 1. Raises TrainingError."""
        return np.array(self._post("/embed", {"inputs": list(texts)}), np.float32)

    def _post(self, route: str, fields: dict[str, Any]) -> Any:
        body = {**fields, "model": self.model, "truncate": True}  # training also cuts its texts
        try:
            response = self.client.post(self.url + route, json=body)
        except httpx.TransportError as error:
            raise TrainingError(
                f"no answer from {self.url}: {error}: start the service with {self.model}, name it with "
                "--url, or give a bundle's folder"
            ) from error
        if response.is_error:
            raise TrainingError(
                f"{self.url}{route} answered {response.status_code}: {response.text[:300]}"
            )
        return response.json()


def predict(examples: Sequence[Example], task: Task, predictor: Predictor) -> npt.NDArray[Any]:
    """(N,) the predictor's answers, requested in groups."""
    starts = range(0, len(examples), BATCH)
    return np.concatenate(
        [
            predictor.predict(examples[start : start + BATCH], task)
            for start in track(starts, task.name, transient=True)
        ]
    )


def measure(task: Task, split: str, data: Path, predictor: Predictor) -> list[Score]:
    """Every metric of the task's kind on `train`, `dev` or `test`, the dev metric first.

    Of `train` at most `TRAIN_ROWS` rows are drawn at random, without those that have no label. Raises DataMissing,
    DataError where the split has no example, ConfigError for a model of other classes, TrainingError.
    """
    sources = {"train": task.train, "dev": (task.dev,), "test": (task.test,)}[split]
    parts = [(source, source.read(data)) for source in sources]
    if split == "train":
        parts = subsample(parts, TRAIN_ROWS)
    examples = [each for _, read in parts for each in read if each.label != UNLABELLED]
    task.require(split, examples)
    answers = predict(examples, task, predictor)
    if task.labels and (answers == -1).all():
        raise ConfigError(
            f"the model never answers {', '.join(task.labels)}, the labels of {task.name}: score it on its "
            "own task"
        )
    gold = labels(examples)
    names = " and ".join(dict.fromkeys(source.name for source in sources))
    return [
        Score(names, split, name, metric(answers, gold), len(examples))
        for name, metric in METRICS[task.kind].items()
    ]


def label_mismatch_warnings(task: Task, known: Sequence[str]) -> list[str]:
    """Warnings for a score on a task whose labels are not those `known` to the model; none where they agree."""
    lacking = [label for label in task.labels if label not in known]
    strange = [label for label in known if label not in task.labels]
    warnings = []
    if lacking:
        warnings.append(f"it has no label {', '.join(lacking)}: rows with one count as wrong")
    if strange:
        warnings.append(
            f"{task.name} has no label {', '.join(strange)}: such an answer counts as wrong"
        )
    return warnings


def record_score(score: Score, run: Path) -> None:
    """Write the score to a run's folder, replacing an older one of the same split; export reads it.

    Raises RunDamaged.
    """
    scores = checkpoint.scores(run)
    same = ("dataset", "split", "metric")
    new = score.as_dict()
    others = [old for old in scores if any(old[key] != new[key] for key in same)]
    write_json(run / checkpoint.SCORES, [*others, new])

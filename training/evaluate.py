"""Score a served model on a task: its answers, asked for over HTTP, against the split's labels."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import httpx
import numpy as np
from rich.progress import track

from training import checkpoint
from training.data import labels
from training.errors import TrainingError
from training.files import write_json
from training.metrics import METRICS, Numbers
from training.tasks.base import Example, Source, Task

BATCH = 64


class Predictor(Protocol):
    """Whatever answers examples."""

    def predict(self, examples: Sequence[Example], task: Task) -> Numbers:
        """(N,) what the metrics of the task's kind compare with the labels; in order."""


@dataclass(frozen=True, slots=True)
class Score:
    dataset: str
    split: str
    metric: str
    value: float  # 0..1
    rows: int

    def as_dict(self) -> dict[str, Any]:
        """As the card has it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Server:
    """A running service, and the model to ask there."""

    url: str
    model: str
    client: httpx.Client

    def predict(self, examples: Sequence[Example], task: Task) -> Numbers:
        """Numbers of labels. Texts beyond the model's `max_tokens` are cut, as in training.

        Raises TrainingError where the service refuses, with its own words.
        """
        if task.kind == "nli":
            pairs = [{"premise": one.texts[0], "hypothesis": one.texts[1]} for one in examples]
            answer = self._post("/nli", {"pairs": pairs, "model": self.model, "truncate": True})
            found = [result["label"] for result in answer["results"]]
        else:
            texts = [one.texts[0] for one in examples]
            body = {"inputs": texts, "model": self.model, "top_k": 1, "truncate": True}
            found = [ranked[0]["label"] for ranked in self._post("/classify", body)]
        if unknown := set(found) - set(task.labels):
            raise TrainingError(
                f"{self.model} answers {sorted(unknown)[0]!r}, which is no label of {task.name}: "
                f"those are {', '.join(task.labels)}"
            )
        return np.array([task.labels.index(label) for label in found])

    def _post(self, route: str, body: dict[str, Any]) -> Any:
        try:
            response = self.client.post(self.url + route, json=body)
        except httpx.TransportError as error:
            raise TrainingError(f"no answer from {self.url}: {error}") from error
        if response.is_error:
            raise TrainingError(
                f"{self.url}{route} answered {response.status_code}: {response.text[:300]}"
            )
        return response.json()


def predict(examples: Sequence[Example], task: Task, predictor: Predictor) -> Numbers:
    """(N,) the predictor's answers, asked for in groups."""
    starts = range(0, len(examples), BATCH)
    return np.concatenate(
        [
            predictor.predict(examples[start : start + BATCH], task)
            for start in track(starts, task.name, transient=True)
        ]
    )


def scores(task: Task, split: str, data: Path, predictor: Predictor) -> list[Score]:
    """Every metric of the task's kind, of the predictor's answers to `dev` or `test`."""
    source: Source = {"dev": task.dev, "test": task.test}[split]
    examples = source.read(data)
    answers, gold = predict(examples, task, predictor), labels(examples)
    return [
        Score(source.name, split, name, metric(answers, gold), len(examples))
        for name, metric in METRICS[task.kind].items()
    ]


def keep(score: Score, run: Path) -> None:
    """Note the score in a run's folder, in the place of an older one of the same split; export reads it."""
    file = run / checkpoint.SCORES
    scores = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    same = ("dataset", "split", "metric")
    new = score.as_dict()
    others = [old for old in scores if any(old[key] != new[key] for key in same)]
    write_json(file, [*others, new])

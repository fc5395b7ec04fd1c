"""Score a served model on a task: its labels, asked for over HTTP, against the split's."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import httpx
from rich.progress import track

from training import checkpoint
from training.errors import TrainingError
from training.files import write_json
from training.tasks.base import Example, Source, Task

BATCH = 64


class Predictor(Protocol):
    """Whatever labels examples."""

    def predict(self, examples: Sequence[Example], *, kind: str) -> list[str]:
        """The label of each example, in order."""


@dataclass(frozen=True, slots=True)
class Score:
    dataset: str
    split: str
    metric: str
    value: float  # 0..1
    rows: int


@dataclass(frozen=True, slots=True)
class Server:
    """A running service, and the model to ask there."""

    url: str
    model: str
    client: httpx.Client

    def predict(self, examples: Sequence[Example], *, kind: str) -> list[str]:
        """Raises TrainingError where the service refuses, with its own words."""
        if kind == "nli":
            pairs = [{"premise": one.texts[0], "hypothesis": one.texts[1]} for one in examples]
            answer = self._post("/nli", {"pairs": pairs, "model": self.model})
            return [result["label"] for result in answer["results"]]
        answer = self._post(
            "/classify",
            {"inputs": [one.texts[0] for one in examples], "model": self.model, "top_k": 1},
        )
        return [ranked[0]["label"] for ranked in answer]

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


def accuracy(task: Task, split: str, data: Path, predictor: Predictor) -> Score:
    """Share of the examples of `dev` or `test` whose label the predictor gives."""
    source: Source = {"dev": task.dev, "test": task.test}[split]
    examples = source.read(data)
    right = 0
    starts = range(0, len(examples), BATCH)
    for start in track(starts, f"{task.name} {split}", transient=True):
        group = examples[start : start + BATCH]
        predicted = predictor.predict(group, kind=task.kind)
        right += sum(
            task.labels[int(one.label)] == label
            for one, label in zip(group, predicted, strict=True)
        )
    return Score(source.name, split, "accuracy", right / len(examples), len(examples))


def keep(score: Score, run: Path) -> None:
    """Note the score in a run's folder, in the place of an older one of the same split; export reads it."""
    file = run / checkpoint.SCORES
    scores = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    same = ("dataset", "split", "metric")
    new = asdict(score)
    others = [old for old in scores if any(old[key] != new[key] for key in same)]
    write_json(file, [*others, new])

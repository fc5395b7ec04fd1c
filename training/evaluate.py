"""Score a model: its answers against a split's labels."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from rich.progress import track

from heedful.files.atomic import write_json
from heedful.training import checkpoint
from heedful.training.data import labels, subsample
from heedful.training.errors import ConfigError
from heedful.training.metrics import METRICS
from heedful.training.tasks.base import UNLABELLED, Example, Task

BATCH = 64
TRAIN_ROWS = 10_000


class Predictor(Protocol):
    """A model that answers examples."""

    def predict(self, examples: Sequence[Example], task: Task) -> npt.NDArray[Any]:
        """(N,) the answers that the metrics of the task's kind compare with the labels."""


@dataclass(frozen=True, slots=True)
class Score:
    dataset: str
    split: str
    metric: str
    value: float
    rows: int

    def as_dict(self) -> dict[str, Any]:
        """The score as a card holds it."""
        return asdict(self)


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

    `train` is at most `TRAIN_ROWS` rows of it, drawn at random, less those without a label. Raises DataMissing,
    DataError where the split has no example, ConfigError for a model of other classes.
    """
    sources = {"train": task.train, "dev": (task.dev,), "test": (task.test,)}[split]
    parts = [(source, source.read(data)) for source in sources]
    if split == "train":
        parts = subsample(parts, TRAIN_ROWS)
    examples = [one for _, found in parts for one in found if one.label != UNLABELLED]
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
    said = []
    if lacking:
        said.append(f"it has no label {', '.join(lacking)}: rows with one count as wrong")
    if strange:
        said.append(
            f"{task.name} has no label {', '.join(strange)}: such an answer counts as wrong"
        )
    return said


def record_score(score: Score, run: Path) -> None:
    """Write the score to a run's folder, replacing an older one of the same split; export reads it.

    Raises RunDamaged.
    """
    scores = checkpoint.scores(run)
    same = ("dataset", "split", "metric")
    new = score.as_dict()
    others = [old for old in scores if any(old[key] != new[key] for key in same)]
    write_json(run / checkpoint.SCORES, [*others, new])

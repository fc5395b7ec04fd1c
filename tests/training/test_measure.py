"""What `measure` asks a model, and what it leaves out."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from heedful.training.evaluate import measure
from heedful.training.tasks.base import UNLABELLED, Example, Source, Task


class Always:
    """A predictor that answers 1."""

    def predict(self, examples: Sequence[Example], task: Task) -> npt.NDArray[Any]:
        return np.ones(len(examples))


def test_pairs_of_train_without_a_label_are_not_scored(tmp_path: Path) -> None:
    def source(name: str, *found: float) -> Source:
        return Source(name, "", "", lambda _: [Example((name,), label) for label in found])

    train = source("first", 1, 0), source("second", UNLABELLED, 1, 1, UNLABELLED)
    dev = source("third", 0, 1)
    task = Task("toy", "classification", ("no", "yes"), train, dev, dev)
    score = measure(task, "train", tmp_path, Always())[0]
    assert (score.dataset, score.rows, score.value) == ("first and second", 4, 0.75)
    assert measure(task, "dev", tmp_path, Always())[0].value == 0.5

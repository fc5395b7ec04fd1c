"""What `measure` asks a model, and what it leaves out; and where scores are kept."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from heedful.training import checkpoint
from heedful.training.errors import ConfigError, DataError, RunDamaged
from heedful.training.metrics import Score
from heedful.training.tasks.base import UNLABELLED, Example, Source, Task
from tools.scoring import measure, record_score


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


def test_a_model_of_other_classes_and_an_empty_split_are_refused(tmp_path: Path) -> None:
    class Stranger(Always):
        def predict(self, examples: Sequence[Example], task: Task) -> npt.NDArray[Any]:
            return -super().predict(examples, task)

    full = Source("full", "", "", lambda _: [Example(("a",), 1)])
    none = Source("none", "", "", lambda _: [])
    task = Task("toy", "classification", ("no", "yes"), (full,), full, none)
    with pytest.raises(ConfigError, match="never answers no, yes, the labels of toy"):
        measure(task, "dev", tmp_path, Stranger())
    with pytest.raises(DataError, match="toy: its test split has no example"):
        measure(task, "test", tmp_path, Always())


def test_a_score_replaces_that_of_its_own_split(tmp_path: Path) -> None:
    old, test, new = (
        Score("toy", split, "accuracy", value, 4)
        for split, value in (("dev", 0.25), ("test", 0.5), ("dev", 0.75))
    )
    for score in (old, test, new):
        record_score(score, tmp_path)
    found = json.loads((tmp_path / checkpoint.SCORES).read_text())
    assert found == [test.as_dict(), new.as_dict()]
    (tmp_path / checkpoint.SCORES).write_text("[{")
    with pytest.raises(
        RunDamaged, match=r"scores\.json is damaged: .*; remove it and evaluate again"
    ):
        record_score(new, tmp_path)

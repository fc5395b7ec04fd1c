"""A cross-encoder learns what only both texts together say, and teaches it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from heedful.training import checkpoint, distillation
from heedful.training.config import Paths, RunConfig, TeacherConfig
from heedful.training.errors import ConfigError, RunMissing
from heedful.training.objectives import make_classes
from heedful.training.restore import restore
from heedful.training.tasks import TASKS, Example, base
from tests.training.conftest import train
from tools import cross_encoder

WORDS = ("dog", "cat", "car", "tree", "house", "river")
TASK = "same-or-other"


def examples(count: int, seed: int) -> list[Example]:
    """Whether both texts name the same thing: neither of them alone says it."""
    rng = np.random.default_rng(seed)
    words = [(a, a if rng.random() < 0.5 else b) for a, b in rng.choice(WORDS, (count, 2))]
    return [Example((f"I see a {a}.", f"There is a {b}."), int(a == b)) for a, b in words]


def source(found: list[Example]) -> base.Source:
    return base.Source(TASK, "none", "made", lambda _: found)


@pytest.fixture(scope="module", autouse=True)
def task() -> Iterator[None]:
    made = base.Task(
        name=TASK, kind="nli", labels=("other", "same"),
        train=(source(examples(400, 0)),), dev=source(examples(60, 1)), test=source([]),
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(TASKS, TASK, made)
        patch.setitem(TASKS, "again", replace(made, name="again"))
        yield


def config(**changes: Any) -> RunConfig:
    fields: dict[str, Any] = {
        "task": TASK,
        "licence": "none",
        "epochs": 2,
        "encoder": {"name": "cross-encoder"},
        "transformer": {"rate": 3e-4, "layer_decay": 0.9, "dropout": 0.0, "sentence": "mean"},
        "optimiser": {"name": "adamw", "batch": 16, "ema_decay": 0.9, "clip": 1.0},
        "freeze": ["pieces"],
        "extra_dev_tasks": ["again"],
    }
    return RunConfig.model_validate(fields | changes)


def test_it_learns_and_teaches_alone_and_with_another(tmp_path: Path) -> None:
    """Two teachers answer with their mean, which is all that a pair without a label is learned from."""
    run, cache = tmp_path / "run", tmp_path / "cache"
    record = train(config(), Paths(run, tmp_path, "none", cache, tmp_path / "run.toml"))
    assert record["dev"]["value"] > 0.9
    assert '"again": ' in (run / checkpoint.LOG).read_text()
    asked = examples(30, 3)
    where: dict[str, Any] = {"pipeline": "none", "cache": cache}
    answers = distillation.probabilities(run, asked, classes=2, **where)
    np.testing.assert_allclose(answers.sum(1), 1, atol=1e-5)
    assert np.mean(answers.argmax(1) == [one.label for one in asked]) > 0.9
    with pytest.raises(ConfigError, match="2 classes, not 3"):
        distillation.probabilities(run, asked, classes=3, **where)
    with pytest.raises(RunMissing, match="the run of a cross-encoder: name the run of an encoder"):
        restore(run)

    torch.manual_seed(1)
    untaught = tmp_path / "untaught"
    untaught.mkdir()
    checkpoint.save_best(untaught, cross_encoder.CrossEncoder(config(), 2).state_dict())
    (untaught / checkpoint.RECORD).write_bytes((run / checkpoint.RECORD).read_bytes())
    longer = ("A text that is much longer than the others", "It is padded by none of them.")
    texts = [*(one.texts for one in asked), longer]
    each = [cross_encoder.probabilities(one, texts)[:-1] for one in (run, untaught)]
    np.testing.assert_allclose(each[0], answers, atol=1e-4)  # in any company
    teacher = TeacherConfig(run=(run, untaught), weight=1)
    objective = make_classes(teacher, 2, device="cpu", **where)
    unlabelled = [Example(one.texts, base.UNLABELLED) for one in asked]
    np.testing.assert_allclose(objective.targets(unlabelled), np.mean(each, axis=0), atol=1e-4)

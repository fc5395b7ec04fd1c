"""A cross-encoder learns what only both texts together say, teaches it, and goes on where it was stopped."""

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
from tests.transformer import tiny_folder
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


def paths(folder: Path) -> Paths:
    return Paths(folder / "run", folder, "none", folder / "cache", folder / "run.toml")


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


@pytest.fixture(scope="module")
def taught(task: None, tmp_path_factory: pytest.TempPathFactory) -> Paths:
    """A run that has learned the task."""
    place = paths(tmp_path_factory.mktemp("taught"))
    assert train(config(), place)["dev"]["value"] > 0.9
    return place


def test_it_learns_and_teaches(taught: Paths) -> None:
    log = (taught.run / checkpoint.LOG).read_text()
    assert '"again": ' in log
    asked = examples(30, 3)
    where: dict[str, Any] = {"pipeline": "none", "cache": taught.cache}
    answers = distillation.probabilities(taught.run, asked, classes=2, **where)
    np.testing.assert_allclose(answers.sum(1), 1, atol=1e-5)
    assert np.mean(answers.argmax(1) == [one.label for one in asked]) > 0.9
    with pytest.raises(ConfigError, match="2 classes, not 3"):
        distillation.probabilities(taught.run, asked, classes=3, **where)
    with pytest.raises(RunMissing, match="the run of a cross-encoder: name the run of an encoder"):
        restore(taught.run)


def test_two_teachers_answer_with_their_mean(taught: Paths, tmp_path: Path) -> None:
    """Of pairs without a label the target is nothing else. The second teacher knows nothing."""
    torch.manual_seed(1)
    bad = tmp_path / "bad"
    bad.mkdir()
    checkpoint.save_best(bad, cross_encoder.CrossEncoder(config(), 2).state_dict())
    (bad / checkpoint.RECORD).write_bytes((taught.run / checkpoint.RECORD).read_bytes())
    asked = [Example(one.texts, base.UNLABELLED) for one in examples(40, 5)]
    teacher = TeacherConfig(run=(taught.run, bad), weight=1)
    objective = make_classes(teacher, 2, pipeline="none", cache=tmp_path / "cache", device="cpu")
    each = [cross_encoder.probabilities(run, [one.texts for one in asked]) for run in teacher.runs]
    np.testing.assert_allclose(objective.targets(asked), np.mean(each, axis=0), atol=1e-5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"task": "embed"}, "task: embed has no classes"),
        ({"extra_dev_tasks": ["sst2"]}, "extra_dev_tasks: sst2 has other labels than"),
        ({"transformer": {"name": "none"}}, r"transformer\.name: 'none' is neither"),
    ],
)
def test_what_it_cannot_learn_is_refused(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    two = source(examples(2, 0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(TASKS, "sst2", replace(TASKS["sst2"], dev=two))
        patch.setitem(TASKS, "embed", replace(TASKS["embed"], train=(two,), dev=two))
        with pytest.raises(ConfigError, match=message):
            train(config(**{"extra_dev_tasks": [], **changes}), paths(tmp_path))


def test_lower_layers_learn_more_slowly(tmp_path: Path) -> None:
    name = str(tiny_folder(tmp_path, 12))
    run = config(transformer={"name": name, "dim": 12, "rate": 1e-3, "layer_decay": 0.5})
    model = cross_encoder.CrossEncoder(run, 2)
    groups, sparse = model.parameter_groups(run.transformer)
    assert not sparse
    assert [one.get("lr") for one in groups] == [5e-4, 1e-3, None]
    found = {id(p) for one in groups for p in one["params"]}
    left = {n for n, p in model.named_parameters() if id(p) not in found and ".pooler." not in n}
    assert left == {"encoder.embeddings.word_embeddings.weight"}


def test_padding_does_not_change_an_answer() -> None:
    torch.manual_seed(0)
    model = cross_encoder.CrossEncoder(config(max_tokens=16), 2).eval()
    texts = [("A dog.",), ("A much longer text than the other one, and longer", "A dog.")]
    read = model.reader.read(texts, np.zeros(2))
    assert np.diff(read.bounds).tolist() == [5, 16]
    assert read.types is not None
    assert read.types[5:].tolist().count(1) == 4, "the short text and its [SEP] are whole"
    ((both, _),) = read.batches(8, None)
    ((alone, _),) = model.reader.read(texts[:1], np.zeros(1)).batches(8, None)
    with torch.inference_mode():
        np.testing.assert_allclose(model(both)[0], model(alone)[0], atol=1e-5)

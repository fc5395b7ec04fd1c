"""all-MiniLM-L6-v2 fine-tuned on pairs: it learns what only both sentences together say, and teaches it."""

import io
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console

from heedful.cli import compact
from heedful.training import checkpoint, cross_encoder, cross_encoder_training, distillation
from heedful.training.config import Paths, TeacherConfig
from heedful.training.cross_encoder import CrossEncoderConfig, Pieces
from heedful.training.errors import ConfigError
from heedful.training.objectives import make_classes
from heedful.training.tasks import TASKS, Example, base

WORDS = ("dog", "cat", "car", "tree", "house", "river")
TASK = "same-or-other"


def examples(count: int, seed: int) -> list[Example]:
    """Whether both texts name the same thing: neither of them alone says it."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        first, second = rng.choice(WORDS, 2)
        if rng.random() < 0.5:
            second = first
        found.append(Example((f"I see a {first}.", f"There is a {second}."), int(first == second)))
    return found


@pytest.fixture(scope="module")
def task() -> Iterator[str]:
    def source(count: int, seed: int) -> base.Source:
        return base.Source(TASK, "none", "made", lambda _: examples(count, seed))

    made = base.Task(
        name=TASK, kind="nli", labels=("other", "same"),
        train=(source(400, 0),), dev=source(60, 1), test=source(60, 2),
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(TASKS, TASK, made)
        yield TASK


@pytest.fixture(scope="module")
def taught(task: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Paths, dict[str, Any]]:
    """A teacher that has learned the task, and its record."""
    place = paths(tmp_path_factory.mktemp("taught"))
    quiet = Console(file=io.StringIO())
    return place, cross_encoder_training.fine_tune(config(task), place, resume=False, console=quiet)


def paths(folder: Path) -> Paths:
    return Paths(folder / "run", folder, "none", folder / "cache", folder / "run.toml")


def config(task: str) -> CrossEncoderConfig:
    return CrossEncoderConfig(
        task=task, epochs=2, batch=16, average=0.9, rate=3e-4, precision="float32"
    )


def test_it_learns_teaches_and_goes_on(task: str, taught: tuple[Paths, dict[str, Any]]) -> None:
    console = Console(file=io.StringIO())
    place, record = taught
    assert record["dev"] > 0.9
    with pytest.raises(ConfigError, match="--resume"):
        cross_encoder_training.fine_tune(config(task), place, resume=False, console=console)
    with pytest.raises(ConfigError, match="another configuration"):
        cross_encoder_training.fine_tune(
            config(task).model_copy(update={"batch": 8}), place, resume=True, console=console
        )
    last = checkpoint.load(place.run / checkpoint.LAST)
    del last["config"]["clip"]  # as a version wrote it that did not know the field
    checkpoint.save(place.run / checkpoint.LAST, last)
    again = cross_encoder_training.fine_tune(config(task), place, resume=True, console=console)
    assert again == json.loads(json.dumps(record)), "nothing is left to train"

    asked = examples(30, 3)
    answers = distillation.probabilities(
        place.run, asked, classes=2, pipeline="none", cache=place.cache
    )
    np.testing.assert_allclose(answers.sum(1), 1, atol=1e-5)
    assert np.mean(answers.argmax(1) == [one.label for one in asked]) > 0.9
    with pytest.raises(ConfigError, match="2 classes, not 3"):
        distillation.probabilities(place.run, asked, classes=3, pipeline="none", cache=place.cache)


def test_a_resumed_teacher_is_the_unbroken_one(
    task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = base.Source(TASK, "none", "made", lambda _: examples(8, 0))
    monkeypatch.setitem(TASKS, TASK, replace(TASKS[TASK], train=(few,), dev=few))
    with_dropout = config(task).model_copy(update={"dropout": 0.1, "average": 0.0})
    whole, broken = paths(tmp_path / "whole"), paths(tmp_path / "broken")

    class KeptAfterOneEpoch(Console):
        def print(self, *objects: Any, **options: Any) -> None:
            if str(objects[0]).startswith("epoch 1:"):
                shutil.copytree(whole.run, broken.run, copy_function=os.link)

    cross_encoder_training.fine_tune(with_dropout, whole, resume=False, console=KeptAfterOneEpoch())
    cross_encoder_training.fine_tune(
        with_dropout, broken, resume=True, console=Console(file=io.StringIO())
    )
    expected, found = (checkpoint.load(one.run / checkpoint.LAST) for one in (whole, broken))
    for name, value in expected["model"].items():
        assert torch.equal(value, found["model"][name]), name


def test_a_loss_that_is_not_finite_stops_the_teacher(
    task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = base.Source(TASK, "none", "made", lambda _: examples(32, 0))
    monkeypatch.setitem(TASKS, TASK, replace(TASKS[TASK], train=(few,), dev=few))
    wild = config(task).model_copy(update={"rate": 1e30, "head_rate": 1e30})
    place = paths(tmp_path)
    with pytest.raises(ConfigError, match=r"run\.toml: the loss is nan in epoch 1: lower rate"):
        cross_encoder_training.fine_tune(
            wild, place, resume=False, console=Console(file=io.StringIO())
        )
    assert not (place.run / checkpoint.BEST).exists()


def test_a_task_without_classes_has_no_teacher(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="task: stsb has no classes"):
        cross_encoder_training.fine_tune(
            config("stsb"), paths(tmp_path), resume=False, console=Console(file=io.StringIO())
        )


def test_it_learns_from_the_mean_of_teachers_alone(
    task: str,
    taught: tuple[Paths, dict[str, Any]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Pairs without a label, one good teacher and one that knows nothing: the mean still leans to what is right."""
    console = Console(file=io.StringIO())
    good, _ = taught
    torch.manual_seed(1)
    bad = tmp_path / "bad" / "run"
    bad.mkdir(parents=True)
    checkpoint.save(bad / checkpoint.BEST, cross_encoder.CrossEncoder(2).state_dict())
    (bad / checkpoint.RECORD).write_bytes((good.run / checkpoint.RECORD).read_bytes())

    asked = [base.Example(one.texts, base.UNLABELLED) for one in examples(400, 5)]
    unlabelled = base.Source(TASK, "none", "made", lambda _: asked)
    monkeypatch.setitem(TASKS, TASK, TASKS[TASK].variant(TASK, unlabelled))
    pupil = paths(tmp_path / "pupil")
    teacher = TeacherConfig(run=(good.run, bad), weight=1)
    changes = {"teacher": teacher, "dropout": 0.1, "epochs": 3}
    record = cross_encoder_training.fine_tune(
        config(task).model_copy(update=changes), pupil, resume=False, console=console
    )
    assert record["dev"] > 0.9
    objective = make_classes(0.0, teacher, 2, pipeline="none", cache=pupil.cache)
    each = [cross_encoder.probabilities(run, [one.texts for one in asked]) for run in teacher.runs]
    np.testing.assert_allclose(objective.targets(asked), np.mean(each, axis=0), atol=1e-5)

    compact.command(good.run, tmp_path / "compact")
    found = cross_encoder.probabilities(tmp_path / "compact", [one.texts for one in asked[:20]])
    np.testing.assert_allclose(found, each[0][:20], atol=0.1)


def test_padding_does_not_change_an_answer(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = cross_encoder.CrossEncoder(2).eval()
    pieces = Pieces.of([("A dog.",), ("A much longer text than the other one.", "A dog.")], 64)
    assert pieces.types[pieces.bounds[1] :].tolist().count(1) == 4, "the second text and its [SEP]"
    with torch.inference_mode():
        both = model(*pieces.collate(np.array([0, 1])))
        alone = model(*pieces.collate(np.array([0])))
    np.testing.assert_allclose(both[0], alone[0], atol=1e-5)


def test_the_longer_text_is_cut_first() -> None:
    pieces = Pieces.of([("word " * 50, "A dog.")], 16)
    assert pieces.lengths.tolist() == [16]
    assert (pieces.types == 1).sum() == 4, "the short one is whole"

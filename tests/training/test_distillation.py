"""A run that learns from the answers of another."""

from pathlib import Path

import numpy as np
import pytest
import torch

from heedful.export import run
from heedful.text.kinds import Kind
from heedful.text.parse import ParseJob, Parser
from heedful.training.config import Paths, RunConfig, TeacherConfig
from heedful.training.distillation import probabilities
from heedful.training.errors import ConfigError, RunMissing
from heedful.training.objectives import make_objective
from heedful.training.restore import restore
from heedful.training.tasks import get
from heedful.training.tasks.base import UNLABELLED, Example
from tests.training.conftest import train


@pytest.fixture
def teacher(config: RunConfig, paths: Paths) -> Path:
    longer = config.model_copy(update={"epochs": 12, "patience": 12})
    train(longer, paths)
    return paths.run


def test_targets_are_the_label_and_the_teacher_s_answer_mixed(
    teacher: Path, config: RunConfig, paths: Paths, tmp_path: Path
) -> None:
    examples = [
        Example(("a movie is good",), 1),
        Example((" ",), 0),  # nothing to read: the teacher does not know
        Example(("a movie is awful and long",), 0),
        Example(("a movie is good",), UNLABELLED),
    ]
    restored = restore(teacher)
    parser = Parser.load(paths.parser)
    answers = []
    for text in ("a movie is good", "a movie is awful and long"):
        (parse,) = parser.parse([ParseJob(text, config.max_tokens, True)])
        ids = torch.from_numpy(restored.lexicon.sentence(parse.tokens, parse.heads).ids)[None]
        vectors = restored.model.sentence(
            ids, torch.tensor([len(parse)]), torch.from_numpy(parse.heads)[None], torch.tensor(1.0)
        )
        answers.append(restored.model.head(vectors).softmax(-1)[0].detach().numpy())
    taught = config.model_copy(update={"teacher": TeacherConfig(run=teacher, weight=0.75)})
    goal = make_objective(
        "classification", taught, classes=2, pipeline=paths.parser, cache=tmp_path / "cache"
    )
    expected = [
        [0.75 * answers[0][0], 0.25 + 0.75 * answers[0][1]],
        [0.25 + 0.375, 0.375],
        [0.25 + 0.75 * answers[1][0], 0.75 * answers[1][1]],
        answers[0],
    ]
    np.testing.assert_allclose(goal.targets(examples), expected, atol=1e-6)
    (kept,) = (tmp_path / "cache").glob("taught-*.npz")
    before = kept.stat().st_mtime_ns
    np.testing.assert_allclose(goal.targets(examples), expected, atol=1e-6)
    assert kept.stat().st_mtime_ns == before


def test_a_pupil_learns_from_wrong_labels_what_its_teacher_knows(
    teacher: Path, config: RunConfig, paths: Paths, tmp_path: Path
) -> None:
    """With all the weight on the teacher the labels say nothing."""
    task = get(config.task)
    right = task.train[0].read(paths.data)
    answers = probabilities(
        teacher, right, classes=2, pipeline=paths.parser, cache=tmp_path / "cache"
    )
    wrong = [Example(one.texts, 1 - one.label) for one in right]
    taught = config.model_copy(
        update={"teacher": TeacherConfig(run=teacher, weight=1), "epochs": 40, "patience": 40}
    )
    goal = make_objective(
        "classification", taught, classes=2, pipeline=paths.parser, cache=tmp_path / "cache"
    )
    np.testing.assert_allclose(goal.targets(wrong), answers, atol=1e-6)
    doubting = config.model_copy(
        update={"teacher": TeacherConfig(run=teacher, weight=0.5, min_teacher_label_prob=0.4)}
    )
    goal = make_objective(
        "classification", doubting, classes=2, pipeline=paths.parser, cache=tmp_path / "cache"
    )
    for asked in (right, wrong):
        labels = np.eye(2)[[int(one.label) for one in asked]]
        agreed = (answers * labels).sum(1, keepdims=True) >= 0.4
        expected = np.where(agreed, (answers + labels) / 2, labels)
        np.testing.assert_allclose(goal.targets(asked), expected, atol=1e-6)
    assert not agreed.all()
    half = len(wrong) // 2
    certain = [Example(one.texts, one.label, trusted=True) for one in wrong[:half]]
    found = goal.targets([*certain, *wrong[half:]])
    np.testing.assert_allclose(found[:half], labels[:half])
    np.testing.assert_allclose(found[half:], expected[half:], atol=1e-6)
    pupil = Paths(tmp_path / "pupil", paths.data, paths.parser, paths.cache, paths.config)
    record = train(taught, pupil)
    assert record["dev"]["value"] == 1.0
    assert record["config"]["teacher"] == {
        "run": str(teacher),
        "weight": 1.0,
        "min_teacher_label_prob": 0.0,
    }
    assert run.read(pupil.run).training.teacher == str(teacher)
    assert run.read(teacher).training.teacher == ""


def test_a_teacher_that_is_not_there_is_named_before_anything_is_parsed(
    config: RunConfig, paths: Paths, tmp_path: Path
) -> None:
    taught = config.model_copy(update={"teacher": TeacherConfig(run=tmp_path / "none")})
    empty = Paths(paths.run, paths.data, paths.parser, tmp_path / "empty", paths.config)
    with pytest.raises(
        RunMissing, match=r"teacher\.run: .*none holds no run\.json: train it first"
    ):
        train(taught, empty)
    assert not empty.cache.exists()


@pytest.mark.parametrize("kind", ["relatedness", "embedding"])
def test_a_teacher_of_classes_is_refused_for_other_kinds(
    kind: Kind, config: RunConfig, paths: Paths, tmp_path: Path
) -> None:
    taught = config.model_copy(update={"teacher": TeacherConfig(run=tmp_path / "none")})
    with pytest.raises(ConfigError, match=rf"teacher is for classes: .* a task of {kind}"):
        make_objective(kind, taught, classes=0, pipeline=paths.parser, cache=paths.cache)


def test_examples_without_a_label_want_a_teacher(config: RunConfig, paths: Paths) -> None:
    goal = make_objective(
        "classification", config, classes=2, pipeline=paths.parser, cache=paths.cache
    )
    with pytest.raises(ConfigError, match=r"no label: name a run in \[teacher\]"):
        goal.targets([Example(("a movie is good",), 1), Example(("a movie",), UNLABELLED)])

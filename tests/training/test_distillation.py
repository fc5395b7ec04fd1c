"""A run that learns from the answers of another."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from heedful.export import run
from heedful.text.batch import collate
from heedful.text.kinds import Kind
from heedful.text.parse import ParseJob, Parser
from heedful.training.config import Paths, RunConfig, TeacherConfig
from heedful.training.distillation import probabilities
from heedful.training.errors import ConfigError, RunMissing
from heedful.training.objectives import Objective, make_objective
from heedful.training.restore import restore
from heedful.training.tasks import get
from heedful.training.tasks.base import UNLABELLED, Example
from tests.training.conftest import changed, train

GOOD, AWFUL = "a movie is good", "a movie is awful and long"


def taught(config: RunConfig, run: Path, weight: float, **more: float) -> RunConfig:
    return changed(config, teacher=TeacherConfig(run=run, weight=weight, **more))


def goal(config: RunConfig, paths: Paths, cache: Path, kind: Kind = "classification") -> Objective:
    return make_objective(kind, config, classes=2, pipeline=paths.parser, cache=cache)


def test_targets_are_the_label_and_the_teacher_s_answer_mixed(
    config: RunConfig, finished: Paths, paths: Paths, tmp_path: Path
) -> None:
    examples = [
        Example((GOOD,), 1),
        Example((" ",), 0),  # nothing to read: the teacher does not know
        Example((AWFUL,), 0),
        Example((GOOD,), UNLABELLED),
    ]
    restored = restore(finished.run)
    answers = []
    for parse in Parser.load(paths.parser).parse(
        [ParseJob(text, config.max_tokens, True) for text in (GOOD, AWFUL)]
    ):
        side = collate([restored.lexicon.sentence(parse.tokens, parse.heads)])
        answers.append(restored.model([side]).softmax(-1)[0].detach().numpy())
    mixing = goal(taught(config, finished.run, 0.75), paths, tmp_path / "cache")
    expected = [
        [0.75 * answers[0][0], 0.25 + 0.75 * answers[0][1]],
        [0.25 + 0.375, 0.375],
        [0.25 + 0.75 * answers[1][0], 0.75 * answers[1][1]],
        answers[0],
    ]
    np.testing.assert_allclose(mixing.targets(examples), expected, atol=1e-6)
    (kept,) = (tmp_path / "cache").glob("taught-*.npz")
    before = kept.stat().st_mtime_ns
    np.testing.assert_allclose(mixing.targets(examples), expected, atol=1e-6)
    assert kept.stat().st_mtime_ns == before


def test_a_pupil_learns_from_wrong_labels_what_its_teacher_knows(
    config: RunConfig, finished: Paths, paths: Paths, tmp_path: Path
) -> None:
    """With all the weight on the teacher the labels say nothing."""
    right = get(config.task).train[0].read(paths.data)
    cache = tmp_path / "cache"
    answers = probabilities(finished.run, right, classes=2, pipeline=paths.parser, cache=cache)
    wrong = [Example(one.texts, 1 - one.label) for one in right]
    learner = changed(taught(config, finished.run, 1), epochs=40, patience=40)
    np.testing.assert_allclose(goal(learner, paths, cache).targets(wrong), answers, atol=1e-6)

    mixing = goal(taught(config, finished.run, 0.5, min_teacher_label_prob=0.4), paths, cache)
    for asked in (right, wrong):
        labels = np.eye(2)[[int(one.label) for one in asked]]
        agreed = (answers * labels).sum(1, keepdims=True) >= 0.4
        expected = np.where(agreed, (answers + labels) / 2, labels)
        np.testing.assert_allclose(mixing.targets(asked), expected, atol=1e-6)
    assert not agreed.all()
    half = len(wrong) // 2
    certain = [Example(one.texts, one.label, trusted=True) for one in wrong[:half]]
    found = mixing.targets([*certain, *wrong[half:]])
    np.testing.assert_allclose(found[:half], labels[:half])
    np.testing.assert_allclose(found[half:], expected[half:], atol=1e-6)

    pupil = replace(paths, run=tmp_path / "pupil")
    record = train(learner, pupil)
    assert record["dev"]["value"] == 1.0
    settings = {"run": str(finished.run), "weight": 1.0, "min_teacher_label_prob": 0.0}
    assert record["config"]["teacher"] == settings
    assert run.read(pupil.run).training.teacher == str(finished.run)
    assert run.read(finished.run).training.teacher == ""


def test_what_nobody_can_teach_is_refused_before_anything_is_parsed(
    config: RunConfig, paths: Paths, tmp_path: Path
) -> None:
    missing = taught(config, tmp_path / "none", 0.5)
    empty = replace(paths, cache=tmp_path / "empty")
    with pytest.raises(RunMissing, match=r"teacher\.run: .*none holds no run\.json: train it"):
        train(missing, empty)
    assert not empty.cache.exists()
    kinds: tuple[Kind, ...] = ("relatedness", "embedding")
    for kind in kinds:
        with pytest.raises(ConfigError, match=rf"teacher is for classes: .* a task of {kind}"):
            goal(missing, paths, paths.cache, kind)
    with pytest.raises(ConfigError, match=r"no label: name a run in \[teacher\]"):
        goal(config, paths, paths.cache).targets(
            [Example((GOOD,), 1), Example((GOOD,), UNLABELLED)]
        )

"""Logistic regression on probabilities, and a student of texts without labels."""

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression

from heedful.training.linear import ClassWeight, Linear, Recipe, Texts
from heedful.training.pseudo_labels import FineTunedTeacher, FrozenTeacher, Lesson
from heedful.training.soft_logistic import soft_logistic

RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_on_labels_it_is_scikit_learns(class_weight: ClassWeight) -> None:
    features = RANDOM.normal(size=(60, 5))
    classes = (features[:, 0] > RANDOM.normal(size=60)) + 1 * (features[:, 1] > 0.5)
    expected = LogisticRegression(C=0.5, tol=1e-6, class_weight=class_weight)
    expected.fit(features, classes)
    parts = [sparse.csr_matrix(features[:, :2]), features[:, 2:]]
    targets = np.eye(3)[classes]
    balanced = class_weight == "balanced"
    weights, intercepts = soft_logistic(parts, targets, 0.5, multi_label=False, balanced=balanced)
    found = softmax(features @ weights.T + intercepts, axis=1)
    np.testing.assert_allclose(found, expected.predict_proba(features), atol=5e-3)

    one = LogisticRegression(C=0.5, tol=1e-6, class_weight=class_weight)
    one.fit(features, classes == 0)
    weights, intercepts = soft_logistic(parts, targets, 0.5, multi_label=True, balanced=balanced)
    found = expit(features @ weights.T + intercepts)[:, 0]
    np.testing.assert_allclose(found, one.predict_proba(features)[:, 1], atol=5e-3)


@pytest.mark.parametrize("multi_label", [False, True])
def test_probabilities_are_learned_as_such(multi_label: bool) -> None:
    features = np.ones((40, 1))
    targets = np.tile([0.9, 0.1], (40, 1))
    weights, intercepts = soft_logistic([features], targets, 100, multi_label=multi_label)
    logits = features @ weights.T + intercepts
    found = expit(logits) if multi_label else softmax(logits, axis=1)
    np.testing.assert_allclose(found, targets, atol=1e-2)


def test_the_student_learns_what_the_teacher_alone_can_read() -> None:
    """Each of the eight labelled texts has a word that no other has; the words of the others go with their class."""
    classes = np.arange(208) % 2
    words = np.concatenate([np.arange(8) + 10, classes[8:]])
    keys = [np.array([word], np.int64) for word in words.tolist()]
    student = RANDOM.normal(size=(208, 4)).astype(np.float32)
    student /= np.linalg.norm(student, axis=1, keepdims=True)
    teacher = np.eye(2, dtype=np.float32)[classes]
    every = Texts(keys, student)
    rows, unlabelled = every[np.arange(8)], every[np.arange(8, 208)]
    targets = np.eye(2, dtype=bool)[classes[:8]]
    frozen = FrozenTeacher(Texts(keys[:8], teacher[:8]), Texts(keys[8:], teacher[8:]))
    lesson = Lesson(unlabelled, frozen)
    recipe = Recipe(words=True, vectors=True, strength=1, teacher="frozen")

    taught = lesson.teach(recipe, np.arange(8), rows, targets)
    assert (taught.logits(unlabelled).argmax(axis=1) == classes[8:]).all()
    alone = Linear.fit(recipe, rows, targets)
    assert (alone.logits(unlabelled).argmax(axis=1) == classes[8:]).mean() < 0.7

    swapped = targets[:4, ::-1]  # a fold's teacher sees the labels of its rows alone
    other = lesson.teach(recipe, np.arange(4), rows[np.arange(4)], swapped)
    assert (other.logits(unlabelled).argmax(axis=1) != classes[8:]).all()


def test_a_student_honours_class_weights() -> None:
    """The features say nothing, so it answers the classes' shares: those of nine rows to one, or halves."""
    rows = Texts([np.array([1], np.int64)] * 200, np.ones((200, 2), np.float32))
    classes = np.eye(2)[(np.arange(200) % 10 == 0).astype(int)]
    shares: dict[ClassWeight, float] = {None: 0.1, "balanced": 0.5}
    for weight, share in shares.items():
        recipe = Recipe(words=True, vectors=True, strength=1, class_weight=weight)
        found = Linear.fit(recipe, rows, classes).probabilities(rows)
        np.testing.assert_allclose(found[:, 1], share, atol=1e-2)


def test_a_teacher_fine_tuned_in_another_process_answers_the_same() -> None:
    rows = [f"{word} is a {kind}" for kind in ("fruit", "colour") for word in ("plum", "lime")]
    targets = np.eye(2, dtype=bool)[[0, 1, 0, 1]]
    recipe = Recipe(words=True, vectors=True, strength=1, teacher="fine-tuned")
    parts = [np.arange(4), np.array([3, 0, 1])]
    here, there = (FineTunedTeacher(rows, ["peach", "a lime"], seed=1) for _ in range(2))
    there.prepare(recipe, parts, targets, processes=2)
    assert len(there._kept) == 2
    expected = here.answers(recipe, parts[1], targets[parts[1]])
    assert not here._kept.keys() - there._kept.keys()
    found = there.answers(recipe, parts[1], targets[parts[1]])
    np.testing.assert_allclose(found, expected, atol=1e-6)

"""Linear models of words and vectors against scikit-learn's, and their teachers, who label texts without labels."""

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit, softmax
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from heedful.training.bag import Bag
from heedful.training.linear import ClassWeight, Linear, Recipe, Texts, recipes
from heedful.training.pseudo_labels import FineTunedTeacher, FrozenTeacher, Lesson
from heedful.training.soft_logistic import soft_logistic
from tests.transformer import tiny_encoder

TEXTS = ["a b c", "a d e f", "b d", "c", "f e d c b a"]
RANDOM = np.random.default_rng(0)


def keys(texts: list[str]) -> list[np.ndarray]:
    return [np.array([ord(word) for word in text.split()], np.int64) for text in texts]


def test_words_are_scikit_learns_where_none_is_doubled_and_unknown_ones_count_for_nothing() -> None:
    bag = Bag.fit(keys(TEXTS), classes=2)
    found = bag.features(keys(TEXTS))
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), token_pattern=r"\w")
    expected = vectorizer.fit_transform(TEXTS)
    products, known = ((one @ one.T).toarray() for one in (found, expected))
    np.testing.assert_allclose(products, known, atol=1e-3)
    known, more, none = bag.features(keys(["a b", "a b z", "z"])).toarray()
    np.testing.assert_allclose(known, more)
    assert not none.any()


@pytest.mark.parametrize("recipe", recipes("balanced", multi_label=False), ids=str)
def test_a_class_that_is_not_in_the_rows_is_never_answered(recipe: Recipe) -> None:
    texts = Texts(keys(TEXTS), np.eye(5, 3, dtype=np.float32))
    for classes in ([0, 2, 0, 2, 0], [2, 2, 2, 2, 2], [0, 2, 3, 2, 0]):
        targets = np.eye(4, dtype=bool)[classes]
        answers = Linear.fit(recipe, texts, targets).logits(texts).argmax(axis=1)
        assert set(answers.tolist()) <= set(classes)


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_on_labels_the_soft_regression_is_scikit_learns(class_weight: ClassWeight) -> None:
    features = RANDOM.normal(size=(60, 5))
    classes = (features[:, 0] > RANDOM.normal(size=60)) + 1 * (features[:, 1] > 0.5)
    parts = [sparse.csr_matrix(features[:, :2]), features[:, 2:]]
    for labels, multi_label in ((classes, False), (classes == 0, True)):
        expected = LogisticRegression(C=0.5, tol=1e-6, class_weight=class_weight)
        expected.fit(features, labels)
        how = {"multi_label": multi_label, "balanced": class_weight == "balanced"}
        weights, intercepts = soft_logistic(parts, np.eye(3)[classes], 0.5, **how)
        logits = features @ weights.T + intercepts
        found = softmax(logits, axis=1)
        if multi_label:
            found = np.stack([1 - expit(logits[:, 0]), expit(logits[:, 0])], axis=1)
        np.testing.assert_allclose(found, expected.predict_proba(features), atol=5e-3)


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
    ids = [np.array([word], np.int64) for word in words.tolist()]
    student = RANDOM.normal(size=(208, 4)).astype(np.float32)
    student /= np.linalg.norm(student, axis=1, keepdims=True)
    teacher = np.eye(2, dtype=np.float32)[classes]
    every = Texts(ids, student)
    rows, unlabelled = every[np.arange(8)], every[np.arange(8, 208)]
    targets = np.eye(2, dtype=bool)[classes[:8]]
    frozen = FrozenTeacher(Texts(ids[:8], teacher[:8]), Texts(ids[8:], teacher[8:]))
    lesson = Lesson(unlabelled, frozen)
    recipe = Recipe(words=True, vectors=True, strength=1, teacher="frozen")

    taught = lesson.teach(recipe, np.arange(8), rows, targets)
    assert (taught.logits(unlabelled).argmax(axis=1) == classes[8:]).all()
    alone = Linear.fit(recipe, rows, targets)
    assert (alone.logits(unlabelled).argmax(axis=1) == classes[8:]).mean() < 0.7

    swapped = targets[:4, ::-1]  # a fold's teacher sees the labels of its rows alone
    other = lesson.teach(recipe, np.arange(4), rows[np.arange(4)], swapped)
    assert (other.logits(unlabelled).argmax(axis=1) != classes[8:]).all()


def test_a_teacher_fine_tuned_in_another_process_answers_the_same(tmp_path: Path) -> None:
    encoder = str(tiny_encoder(tmp_path / "encoder", 12))
    rows = [f"{word} is a {kind}" for kind in ("fruit", "colour") for word in ("plum", "lime")]
    targets = np.eye(2, dtype=bool)[[0, 1, 0, 1]]
    recipe = Recipe(words=True, vectors=True, strength=1, teacher="fine-tuned")
    parts = [np.arange(4), np.array([3, 0, 1])]
    here, there = (FineTunedTeacher(rows, ["peach", "a lime"], 1, encoder) for _ in range(2))
    there.prepare(recipe, parts, targets, processes=2)
    assert len(there._answers) == 2
    expected = here.answers(recipe, parts[1], targets[parts[1]])
    assert not here._answers.keys() - there._answers.keys()
    found = there.answers(recipe, parts[1], targets[parts[1]])
    np.testing.assert_allclose(found, expected, atol=1e-6)

"""Hashed TF-IDF against scikit-learn's, and the linear models over it."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from heedful.training.bag import Bag
from heedful.training.linear import Linear, Recipe, Texts, recipes

TEXTS = ["a b c", "a d e f", "b d", "c", "f e d c b a"]


def keys(texts: list[str]) -> list[np.ndarray]:
    return [np.array([ord(word) for word in text.split()], np.int64) for text in texts]


def test_it_is_scikit_learns_where_no_word_is_doubled() -> None:
    found = Bag.fit(keys(TEXTS), classes=2).features(keys(TEXTS))
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), token_pattern=r"\w")
    expected = vectorizer.fit_transform(TEXTS)
    np.testing.assert_allclose(
        (found @ found.T).toarray(), (expected @ expected.T).toarray(), atol=1e-3
    )


def test_unknown_words_count_for_nothing() -> None:
    bag = Bag.fit(keys(TEXTS), classes=2)
    known, more, none = bag.features(keys(["a b", "a b z", "z"])).toarray()
    np.testing.assert_allclose(known, more)
    assert not none.any()


def test_many_classes_share_fewer_buckets() -> None:
    assert len(Bag.fit(keys(TEXTS), classes=2).idf) == 2**12 - 1
    many = [np.arange(i * 1000, (i + 1) * 1000) for i in range(60)]
    assert len(Bag.fit(many, classes=2).idf) == 2**18 - 1
    assert len(Bag.fit(many, classes=255).idf) == 2**16 - 1


@pytest.mark.parametrize("recipe", recipes("balanced", multi_label=False), ids=str)
def test_a_class_that_is_not_in_the_rows_is_never_answered(recipe: Recipe) -> None:
    texts = Texts(keys(TEXTS), np.eye(5, 3, dtype=np.float32))
    for classes in ([0, 2, 0, 2, 0], [2, 2, 2, 2, 2], [0, 2, 3, 2, 0]):
        targets = np.eye(4, dtype=bool)[classes]
        answers = Linear.fit(recipe, texts, targets).logits(texts).argmax(axis=1)
        assert set(answers.tolist()) <= set(classes)


def test_taught_models_read_words_that_are_in_two_texts() -> None:
    """A word of one text has no weight where a teacher's probabilities are the targets, and one with labels."""
    recipe = Recipe(True, False, 1.0, None, False)
    fitted = Texts(keys(["a", "a b", "b", "c"]), np.zeros((4, 1), np.float32))
    labels = np.array([[1, 0], [0, 1], [0, 1], [1, 0]], bool)
    alone = Texts(keys(["", "a", "b", "c"]), np.zeros((4, 1), np.float32))
    none, *weights = Linear.fit(recipe, fitted, labels * 0.8 + 0.1).logits(alone)
    assert [bool((each != none).any()) for each in weights] == [True, True, False]
    none, *weights = Linear.fit(recipe, fitted, labels).logits(alone)
    assert [bool((each != none).any()) for each in weights] == [True, True, True]

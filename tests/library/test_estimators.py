"""The estimators in scikit-learn's own tools, and the bundle that a classifier saves."""

import sys
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks

import heedful
from heedful.export.bundle_writer import write
from heedful.runtime.bundles.bundle import read
from heedful.runtime.errors import BadInput, BundleError, StartupError
from heedful.sklearn import HeedfulClassifier, SentenceEncoder
from tests.process import ROOT, ran

GOOD = ["good kids", "the dog is good", "two good hands", "a good man", "good", "good dog"]
BAD = ["bad kids", "the dog is bad", "two bad hands", "a bad man", "bad", "bad dog"]
X, Y = GOOD + BAD, ["glad"] * 6 + ["sad"] * 6


@pytest.fixture(autouse=True)
def _bundles(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_MODELS", str(models))


CHECKS = """
no_attributes_set_in_init get_params_invariance set_params estimator_cloneable estimator_repr
estimator_tags_renamed valid_tag_types do_not_raise_errors_in_init_or_set_params mixin_order
"""
"""The checks of check_estimator without a matrix of numbers: it runs no others for texts."""


@pytest.mark.parametrize("check", CHECKS.split())
@pytest.mark.parametrize(
    "estimator", [SentenceEncoder("tiny-flat"), HeedfulClassifier("tiny-flat")]
)
def test_scikit_learns_checks_of_what_takes_texts(check: str, estimator: Any) -> None:
    getattr(estimator_checks, f"check_{check}")(type(estimator).__name__, estimator)


def test_the_encoder_in_a_pipeline_and_a_grid_search() -> None:
    pipeline = make_pipeline(SentenceEncoder("tiny-flat"), LogisticRegression(C=100))
    models = {"sentenceencoder__model": ["tiny-flat", "tiny-sst2"]}
    search = GridSearchCV(pipeline, models, cv=2).fit(X, Y)
    assert search.predict(["good hands", "bad hands"]).tolist() == ["glad", "sad"]
    names = [f"sentenceencoder{i}" for i in range(8)]
    encoder = SentenceEncoder("tiny-flat")
    vectors = encoder.fit_transform(text for text in X)  # an iterator is read once
    assert encoder.get_feature_names_out().tolist() == names
    np.testing.assert_array_equal(vectors, encoder.transform(X))
    np.testing.assert_array_equal(encoder.transform(pa.array(X)), vectors)
    assert encoder.set_output(transform="pandas").fit_transform(X).columns.tolist() == names


def test_rare_classes_may_count_as_much_as_common_ones_and_a_weight_as_so_many_rows() -> None:
    texts, moods = [*GOOD, *BAD[:2]], ["glad"] * 6 + ["sad"] * 2

    def probabilities(weight: str | None) -> Any:
        """The classifier's and scikit-learn's, of the texts that it has seen."""
        classifier = HeedfulClassifier("tiny-flat", C=10, class_weight=weight).fit(texts, moods)
        vectors = classifier.model_.encode(texts)
        plain = LogisticRegression(C=10, class_weight=weight, max_iter=1000).fit(vectors, moods)
        expected = plain.predict_proba(vectors)
        np.testing.assert_allclose(classifier.predict_proba(texts), expected, atol=1e-3)
        return expected

    assert np.abs(probabilities("balanced") - probabilities(None)).max() > 0.05
    weighted = HeedfulClassifier("tiny-flat").fit(X, Y, sample_weight=[2] * 6 + [1] * 6)
    repeated = HeedfulClassifier("tiny-flat").fit([*GOOD, *X], ["glad"] * 6 + Y)
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-3)


def test_the_classifier_is_searched_cloned_and_dumped(tmp_path: Path) -> None:
    search = GridSearchCV(HeedfulClassifier("tiny-flat"), {"C": [0.01, 100.0]}, cv=2).fit(X, Y)
    best = search.best_estimator_
    assert best.predict(["good hands", "bad hands"]).tolist() == best.classes_.tolist()
    assert best.classes_.tolist() == ["glad", "sad"]
    joblib.dump(best, tmp_path / "model.joblib")
    assert (tmp_path / "model.joblib").stat().st_size < 10_000  # it names the bundle
    again = joblib.load(tmp_path / "model.joblib")
    np.testing.assert_array_equal(again.predict_proba(X), best.predict_proba(X))
    with pytest.raises(NotFittedError):
        clone(best).predict(X)
    assert best.score(X, Y) == 1.0


@pytest.mark.parametrize(
    ("base", "labels", "threshold"),
    [
        ({}, Y, 0.5),
        ({}, Y, 0.9),
        ({}, [0, 1, 2] * 4, 0.5),
        ({"abstain": 0.999}, Y, 0.5),
        ({"multi_label": True}, Y, 0.5),
    ],
    ids=["two", "a threshold", "three", "an abstaining base", "a base of several labels"],
)
def test_the_saved_bundle_answers_like_the_classifier(
    models: Path, tmp_path: Path, base: dict[str, Any], labels: list[Any], threshold: float
) -> None:
    sst2 = read(models / "tiny-sst2")
    write(tmp_path / "tiny-base", sst2.card.fields() | base, sst2.files)
    classifier = HeedfulClassifier(tmp_path / "tiny-base", C=5, threshold=threshold).fit(X, labels)
    card = classifier.save(tmp_path / "tiny-mood", data="moods.csv")
    assert (card.task, card.kind) == ("mood", "classification")
    assert (card.abstain, card.multi_label) == (None, False)
    assert card.labels == tuple(map(str, classifier.classes_))
    assert card.training.data[-1].name == "moods.csv"
    predicted = classifier.predict(X).tolist()
    with heedful.load(tmp_path / "tiny-mood") as model:
        assert model.predict(X).tolist() == list(map(str, predicted))
        if threshold == 0.5:
            expected = classifier.predict_proba(X)
            np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-5)
        else:
            assert 0 < predicted.count("sad") < 6


def test_a_bundle_that_is_replaced_in_a_running_notebook(models: Path, tmp_path: Path) -> None:
    """The old one stays loaded: a head over its vectors was saved over the graphs of the new one."""
    flat, other = read(models / "tiny-flat"), read(models / "tiny-sst2")
    places: dict[str, Any] = {"models": tmp_path, "parser": models / "parser"}
    write(tmp_path / "tiny-flat", flat.card.fields(), flat.files)
    classifier = HeedfulClassifier("tiny-flat", **places).fit(X, Y)
    pipeline = make_pipeline(SentenceEncoder("tiny-flat", **places), LogisticRegression(C=100))
    pipeline.fit(X, Y)
    write(tmp_path / "tiny-flat", other.card.fields(), other.files)
    with pytest.raises(BundleError, match=r"tiny-flat: .* HeedfulClassifier was fitted on"):
        classifier.save(tmp_path / "tiny-mood")
    version = read(tmp_path / "tiny-flat").card.version
    assert classifier.fit(X, Y).model_.card.version == classifier.version_ == version
    classifier.save(tmp_path / "tiny-mood")
    fitted = r"tiny-flat: .* SentenceEncoder was fitted on .*: fit it"
    with pytest.raises(BundleError, match=fitted):
        pipeline.predict(X)
    assert pipeline.fit(X, Y).predict(X).tolist() == Y


def test_a_random_state_without_a_seed_is_saved_as_0_and_booleans_as_files_spell_them(
    tmp_path: Path,
) -> None:
    classifier = HeedfulClassifier("tiny-flat", random_state=np.random.RandomState(3))
    card = classifier.fit(X, [True, False] * 6).save(tmp_path / "tiny-mood")
    assert (card.training.seed, card.labels) == (0, ("false", "true"))
    classifier.set_params(random_state=np.int64(3))
    assert classifier.save(tmp_path / "tiny-mood").training.seed == 3


@pytest.mark.parametrize(
    ("texts", "labels", "reason"),
    [
        (X, None, "y is None"),
        (X, Y[:-1], "12 texts and 11 labels"),
        (X[:6], np.array(Y[:6]), "all labels are 'glad': give texts of two classes"),
        (X, [*Y[:-1], None], r"y\[11\] is missing: leave the row out"),
        (X, pd.Series([*Y[:-1], pd.NA], dtype="string"), r"y\[11\] is missing"),
        (X, [*range(11), np.nan], r"y\[11\] is missing"),
        (set(X), Y, "X is set: give a list"),  # in random order, each got another's label
        ([*X[:-1], None], Y, r"X\[11\] is a missing value: give a string"),
        ([*X[:-1], " "], Y, r"X\[11\] is blank"),
        ([], [], "X is empty"),
    ],
)
def test_wrong_data_is_named(texts: Any, labels: Any, reason: str) -> None:
    with pytest.raises((ValueError, BadInput), match=reason):
        HeedfulClassifier("tiny-flat").fit(texts, labels)
    if "blank" in reason:
        with pytest.raises(BadInput, match=reason):
            SentenceEncoder("tiny-flat").fit_transform(texts)


def test_wrong_thresholds_are_named_and_a_probability_of_the_threshold_is_enough() -> None:
    with pytest.raises(ValueError, match="threshold is for two classes"):
        HeedfulClassifier("tiny-flat", threshold=0.7).fit(X, [0, 1, 2] * 4)
    with pytest.raises(ValueError, match="between 0 and 1"):
        HeedfulClassifier("tiny-flat", threshold=1.0).fit(X, Y)
    classifier = HeedfulClassifier("tiny-flat").fit(X, Y)
    row = classifier.predict_proba(X).argmax(axis=0)[1]
    classifier.threshold = float(classifier.predict_proba([X[row]])[0, 1])
    assert classifier.predict([X[row]])[0] == classifier.classes_[1]
    classifier.threshold += 1e-6
    assert classifier.predict([X[row]])[0] == classifier.classes_[0]


def test_a_saved_bundle_is_loaded_where_its_parser_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    HeedfulClassifier("tiny-flat").fit(X, Y).save(tmp_path / "tiny-mood")
    heedful.load(tmp_path / "tiny-mood").close()
    monkeypatch.delenv("HEEDFUL_MODELS")
    monkeypatch.chdir(tmp_path)
    remedy = r"/parser': name .* --parser, HEEDFUL_PARSER or parser="
    with pytest.raises(StartupError, match=remedy):
        heedful.load(tmp_path / "tiny-mood")


def test_a_classifier_is_not_saved_over_its_model_or_by_a_name_of_no_bundle(
    models: Path, tmp_path: Path
) -> None:
    """Nor over other files: tests/runtime/test_bundle.py."""
    classifier = HeedfulClassifier("tiny-flat").fit(X, Y)
    card = models / "tiny-flat" / "card.json"
    before = card.read_bytes()
    with pytest.raises(BundleError, match=r"tiny-flat: .*that the classifier uses: save"):
        classifier.save(card.parent)
    assert card.read_bytes() == before
    for name in ("My_Model", "mood.v2", "größe", "a b"):
        with pytest.raises(BadInput, match=rf"^'{name}' names no bundle: use a-z, 0-9 and -$"):
            classifier.save(tmp_path / name)


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        (["1", "1.0"], "the label '1' reads '1', as another label does"),
        (["True", "true"], "the label 'True' reads 'true', as another label does"),
        (["\u200b", "x"], "the label '.*' is blank"),
        (["x\u200b", "x"], "the label 'x' reads 'x', as another label does"),
        (["\ud800", "x"], "the label '.*' holds half of a surrogate pair"),
        (["a\0b", "x"], "the label '.*' holds .* a NUL"),
    ],
)
def test_labels_that_a_bundle_cannot_tell_apart_are_named(
    tmp_path: Path, labels: list[str], reason: str
) -> None:
    classifier = HeedfulClassifier("tiny-flat").fit(X, labels * 6)
    with pytest.raises(BadInput, match=reason):
        classifier.save(tmp_path / "tiny-mood")
    assert not (tmp_path / "tiny-mood").exists()


FIT = """
from heedful.sklearn import HeedfulClassifier
HeedfulClassifier('tiny-flat').fit(['good', 'bad'], [0, 1]).save('tiny-mood')
"""


@pytest.mark.parametrize(
    ("missing", "what"), [("sklearn", "heedful.sklearn needs"), ("onnx", "save needs")]
)
def test_without_the_extra_the_error_says_what_to_install(
    tmp_path: Path, missing: str, what: str
) -> None:
    (tmp_path / f"{missing}.py").write_text(f"raise ModuleNotFoundError(name={missing!r})\n")
    done = ran(sys.executable, "-c", FIT, cwd=tmp_path, PYTHONPATH=f"{tmp_path}:{ROOT}")
    message = f"{what} the extra sklearn: pip install 'heedful[sklearn]'"
    assert done.stderr.splitlines()[-1] == f"ModuleNotFoundError: {message}"

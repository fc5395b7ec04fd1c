"""heedful.load: its answers are the service's, bit for bit, and its errors name what is wrong."""

import asyncio
import copy
import json
import pickle
import shutil
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import spacy
from spacy.tokens import Doc

import heedful
from heedful.export.bundle_writer import write
from heedful.library import inputs as library_inputs
from heedful.library.model import Model
from heedful.runtime.answers import Precision, as_precision
from heedful.runtime.bundles.bundle import read
from heedful.runtime.errors import BadInput, BundleError, StartupError, Unavailable, WrongTask
from heedful.runtime.explain.run import ExplainOptions
from heedful.runtime.inputs import Inputs
from heedful.runtime.service import Options, running
from tests import asking
from tests.builders import BuiltParser, build_bundle, random_texts

TEXTS = ["two kids wash", "the dog is not good", "bad", "two kids wash", "a man at the ballgame"]
PAIRS = [("two kids wash", "kids wash hands"), ("the dog is bad", "the dog is good")]
EXPLAINED = ExplainOptions(faithfulness=True, evidence=True, gradients=True, curves=True)


@pytest.fixture(scope="module")
def served(models: Path) -> dict[str, Any]:
    """The service's answers."""

    async def ask() -> dict[str, Any]:
        async with running(Options(models, threads=1)) as service:
            pairs = Inputs.from_pairs(PAIRS, ("first", "second"))
            answers: dict[str, Any] = {
                "vectors": await asking.embed(service, TEXTS, model="tiny-sst2", normalize=True),
                "classes": await asking.classify(service, TEXTS),
                "nli": await asking.nli(service, PAIRS),
                "relatedness": await service.answer(service.bind("relatedness").relatedness(pairs)),
                "explained": await asking.explain(service, TEXTS[:1], EXPLAINED, model="tiny-sst2"),
            }
            return {name: answer.value for name, answer in answers.items()}

    return asyncio.run(ask())


def test_it_gives_the_services_bits(model: Model, models: Path, served: dict[str, Any]) -> None:
    assert repr(model) == f"<Model tiny-sst2 {model.card.version}: classification>"
    np.testing.assert_array_equal(model.encode(TEXTS), served["vectors"])
    np.testing.assert_array_equal(model.predict_proba(TEXTS), served["classes"])
    assert model.predict(TEXTS)[0] == model.labels[served["classes"][0].argmax()]
    with heedful.load("tiny-nli", models=models) as nli:
        judged = nli.nli(PAIRS)
        assert [list(scores.values()) for scores in judged] == served["nli"].tolist()
        assert set(judged[0]) == {"entailment", "neutral", "contradiction"}
    with heedful.load(models / "tiny-related") as related:
        assert related.relatedness(PAIRS).tolist() == served["relatedness"].tolist()


def test_a_string_a_list_and_an_array(model: Model, served: dict[str, Any]) -> None:
    np.testing.assert_array_equal(model.encode(TEXTS[0]), model.encode([TEXTS[0]])[0])
    chunked = pa.chunked_array([TEXTS[:2], TEXTS[2:]])
    for column in (np.array(TEXTS), pa.array(TEXTS), chunked, iter(TEXTS)):
        np.testing.assert_array_equal(model.encode(column), served["vectors"])
    assert model.encode([]).shape == (0, 8)
    assert model.predict_proba([]).shape == (0, 2)
    short = model.encode(TEXTS, truncate_dim=3, batch_size=2)
    np.testing.assert_allclose(np.linalg.norm(short, axis=1), 1, atol=1e-6)
    assert short.shape == (5, 3)
    np.testing.assert_array_equal(model.encode(["kids"], prompt="two "), model.encode(["two kids"]))
    assert not np.allclose(np.linalg.norm(model.encode(TEXTS, normalize_embeddings=False)[0]), 1)
    cosines = model.similarity(model.encode(TEXTS), model.encode(TEXTS[:2]))
    assert cosines.shape == (5, 2)
    assert cosines[3, 0] == pytest.approx(1)


def test_long_lists_come_back_in_order_from_one_process_or_two(
    model: Model, models: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = random_texts(500)
    expected = model.encode(texts)
    monkeypatch.setattr(library_inputs, "CHUNK", 64)
    chunked = model.encode(texts, show_progress_bar=True)
    shown = capsys.readouterr()
    assert "tiny-sst2" in shown.err
    assert not shown.out
    np.testing.assert_allclose(chunked, expected, atol=1e-6)
    with heedful.load("tiny-sst2", models=models, processes=2) as two:
        np.testing.assert_array_equal(two.encode(texts), chunked)
        with pytest.raises(BadInput, match=r"sentences\[70\] has 40 tokens and is longer"):
            two.encode([*texts[:70], "dog " * 40, *texts[:70]], truncate=False)
        np.testing.assert_array_equal(two.encode(texts), chunked)
    with pytest.raises(Unavailable, match="closed"):
        two.encode(["dog"])


def test_a_pickle_loads_it_again(models: Path, tmp_path: Path) -> None:
    """A copy is a model that is closed alone. A pickle names the bundle, which may have been replaced."""
    folder = shutil.copytree(models / "tiny-sst2", tmp_path / "tiny-sst2")
    with heedful.load(folder, parser=models / "parser", threads=1) as model:
        expected, pickled = model.encode(TEXTS), pickle.dumps(model)
        assert len(pickled) < 1000
        with pickle.loads(pickled) as again, copy.copy(model) as copied:
            for same in (again, copied):
                np.testing.assert_array_equal(same.encode(TEXTS), expected)
        np.testing.assert_array_equal(model.encode(TEXTS), expected)
    other = read(models / "tiny-flat")
    write(folder, other.card.fields(), other.files)
    reason = r"tiny-sst2: .* the pickled model was .*: load it by"
    with pytest.raises(BundleError, match=reason):
        pickle.loads(pickled)


def test_an_explanation_is_the_services_and_draws_itself(
    model: Model, served: dict[str, Any], tmp_path: Path
) -> None:
    """tests/cli/test_explain.py has its page, tests/runtime/test_explain.py its numbers."""
    explained = model.explain(TEXTS[0], options=EXPLAINED)
    assert repr(explained) == f"<Explanation tiny-sst2: {TEXTS[0]!r}>"
    assert explained.tokens == [TEXTS[0].split()]
    answer = explained.answer
    assert answer["prediction"]["label"] == model.predict(TEXTS[:1])[0]
    (evidence,) = answer["evidence"]["sentences"]
    (expected,) = served["explained"].fields["evidence"]["sentences"]
    np.testing.assert_allclose(evidence["weights"], expected.weights, atol=1e-6)
    assert len(evidence["gradients"]["weights"]) == len(evidence["weights"])
    assert {"kind", "name", "value"} == set(evidence["correlations"][0])
    assert len(answer["faithfulness"]["sentences"][0]["attended"]) == 1
    assert set(answer["curves"]["sentences"][0]) == {"deleted", "masked"}
    assert json.dumps(answer, default=np.ndarray.tolist)
    assert model.explain("kids", evidence=True).answer["evidence"]["sentences"] == [None]
    drawn = explained._repr_html_()
    assert drawn.startswith("<iframe srcdoc=")
    assert "<script" not in drawn  # all of the page is escaped
    explained.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == explained.html


def test_a_text_is_explained_whole_or_on_request_cut(tmp_path: Path, pipeline: BuiltParser) -> None:
    """`predict` reads 64 tokens of this model, gradients are taken up to 48, curves are drawn up to 24."""
    build_bundle(tmp_path, pipeline, name="tiny-long", max_tokens=64, explain=True)
    text, curves = "good kids " * 12 + "bad dog " * 13, ExplainOptions(curves=True)
    with heedful.load(tmp_path / "tiny-long", parser=pipeline.folder) as model:
        answered = dict(zip(model.labels, model.predict_proba([text])[0], strict=True))
        explained = model.explain(text, evidence=True).answer["prediction"]["scores"]
        assert explained == pytest.approx(answered, abs=1e-5)
        for options, limit in (
            (curves, "24 with curves"),
            (ExplainOptions(gradients=True), "48 with gradients"),
        ):
            reason = rf"has 50 tokens: tiny-long is explained up to {limit}.* set truncate=True"
            with pytest.raises(BadInput, match=reason) as caught:
                model.explain(text, options=options)
            assert caught.value.code == "input_too_long"
        cut = model.explain(text, options=curves, truncate=True)
    assert len(cut.tokens[0]) == 24
    assert cut.answer["prediction"]["scores"] != pytest.approx(answered, abs=1e-2)


TABLE = pd.DataFrame({"text": ["kids"], "label": ["dog"]})
"""Iterating over it gives the columns' names."""


def test_pairs_in_every_shape(models: Path) -> None:
    named = [{"hypothesis": hypothesis, "premise": premise} for premise, hypothesis in PAIRS]
    shapes: list[Any] = [named, (pair for pair in PAIRS), [list(pair) for pair in PAIRS]]
    no_pairs: list[Any] = [{"a": "kids", "b": "dog"}, {"kids", "dog"}, None, "ab", ["kids"]]
    listed = r"give a list of pairs, \[\(premise, hypothesis\)\]"
    columns = r"df\[\['premise', 'hypothesis'\]\].to_dict\('records'\)"
    wrong: list[tuple[Any, str]] = [
        (named[0], "pairs is dict"),
        (None, "pairs is NoneType"),
        ([("kids", None)], r"pairs\[0\].hypothesis is a missing value: give a string"),
        (PAIRS[0], rf"pairs\[0\] is a string: {listed}"),
        (TABLE, f"pairs is a table: .* {columns}"),  # rows of other columns would be refused
    ]
    with heedful.load("tiny-nli", models=models) as nli:
        expected = nli.nli(PAIRS)
        for pairs in (*shapes, np.array(PAIRS)):
            assert nli.nli(pairs) == expected
        assert nli.nli([]) == []
        assert nli.nli(*PAIRS[0]) == expected[0]
        assert nli.nli(PAIRS, batch_size=1)[1] == pytest.approx(expected[1], abs=1e-6)
        remedy = "give two strings in a tuple, or a dictionary with only premise and hypothesis"
        for pair in ({**named[0], "label": "neutral"}, *no_pairs, np.array(1)):
            with pytest.raises(BadInput, match=rf"pairs\[1\] is no pair: {remedy}"):
                nli.nli([PAIRS[0], pair])
        for pairs, reason in wrong:
            with pytest.raises(BadInput, match=reason):
                nli.nli(pairs)
    with heedful.load(models / "tiny-related") as related:
        scores = related.relatedness([{"a": a, "b": b} for a, b in PAIRS])
        np.testing.assert_array_equal(scores, related.relatedness(PAIRS))


@pytest.mark.parametrize("prompt", [None, "query: "])
@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        (["kids", " "], r"sentences\[1\] is blank: send a text"),
        (["kids", float("nan")], r"sentences\[1\] is a missing value: give a string"),
        ([None], r"sentences\[0\] is a missing value"),
        (pa.array(["kids", None]), r"sentences\[1\] is a missing value"),
        (pd.Series(["kids", pd.NA]), r"sentences\[1\] is a missing value"),
        (["kids", 3], r"sentences\[1\] is int: give a string"),
        (["kids", np.array(["dog", "bad"])], r"sentences\[1\] is ndarray"),
        (None, "sentences is NoneType: give a list of strings"),
        (b"kids", "sentences is bytes: give a list of strings"),
        ({"kids": "dog"}, "sentences is dict: give a list of strings"),
        ({"kids", "dog"}, "sentences is set: give a list of strings"),  # in what order?
        (TABLE, r"sentences has the shape \(1, 2\): give one text a row, for example a column"),
        (np.array([["kids"]]), r"sentences has the shape \(1, 1\)"),
    ],
)
def test_what_is_no_text_is_named(
    model: Model, texts: Any, reason: str, prompt: str | None
) -> None:
    with pytest.raises(BadInput, match=reason):
        model.encode(texts, prompt=prompt)
    if not isinstance(texts, list):
        with pytest.raises(BadInput, match=reason.replace("sentences", "texts")):
            model.predict(texts)


def test_a_missing_value_does_not_fit(model: Model) -> None:
    column = pd.Series(["kids", None, " ", "dog " * 40, float("nan"), pd.NA], dtype=object)
    assert model.fits(column).tolist() == [True, *[False] * 5]
    assert model.fits(column, truncate=True).tolist() == [True, False, False, True, False, False]


def test_a_document_of_spacy_is_read_with_its_tree(model: Model) -> None:
    """The model's parser is not used; white space is no word."""
    words = ["two", "kids", " ", "wash", "their", "hands"]
    places = [i for i, word in enumerate(words) if word != " "]
    vectors, vocab = [], spacy.blank("en").vocab
    for heads in ([1, 3, 1, 3, 5, 3], [0, 0, 1, 1, 3, 4]):
        doc = Doc(vocab, words, heads=heads, deps=["dep"] * 6)
        tokens = model.explain(doc).answer["sentences"][0]["tokens"]
        assert [(token["text"], places[token["head"]], token["start"]) for token in tokens] == [
            (words[i], heads[i], doc[i].idx) for i in places
        ]
        vectors.append(model.encode(doc))
        np.testing.assert_array_equal(vectors[-1], model.encode([doc, doc.text])[0])
    assert np.abs(vectors[0] - vectors[1]).max() > 1e-3
    flat = Doc(vocab, ["two", "kids", "wash"])
    np.testing.assert_array_equal(model.encode(flat), model.encode(flat.text.rstrip()))
    assert model.fits([doc, flat]).tolist() == [True, True]


LOADS: list[tuple[object, dict[str, Any], str]] = [
    ("tiny-cat", {}, r"no bundle 'tiny-cat'.*known are.*tiny-flat.*hf://"),
    ("tiny-flat", {"device": "gpu"}, "device is 'gpu': give one of auto, cpu, cuda"),
    ("tiny-flat", {"threads": 0}, "threads is 0: give a whole number from 1"),
    ("tiny-flat", {"threads": "2"}, "threads is '2': give a whole number from 1"),
    ("tiny-flat", {"processes": 0}, "processes is 0: give a whole number from 1"),
    ("tiny-flat", {"parser": "/nope"}, "cannot load the spaCy pipeline '/nope'"),
    (3, {}, "model is int: give a bundle's name or its folder"),
]


def test_what_cannot_be_loaded_is_named(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEEDFUL_MODELS", str(models))
    assert heedful.load("tiny-flat").card.kind == "embedding"
    for name, options, reason in LOADS:
        with pytest.raises(StartupError, match=reason):
            heedful.load(name, **options)  # type: ignore[arg-type]
    with pytest.raises(AttributeError, match="no attribute 'lode'"):
        heedful.lode  # type: ignore[attr-defined]  # noqa: B018
    assert heedful.__version__ == version("heedful")
    assert dir(heedful) == ["__version__", "bundles", "classify", "distill", "load"]
    rows = {row["name"]: row for row in heedful.bundles(models)}
    assert set(rows) == {file.parent.name for file in models.glob("*/card.json")}
    assert rows["tiny-sst2"]["kind"] == "classification"
    assert "positive" in rows["tiny-sst2"]["use"]
    with pytest.raises(StartupError, match=r"no bundle 'x' .*install heedful-bundles, .*`make wh"):
        heedful.load("x", models=models / "tiny-sst2")
    for name in ("parser", "tiny-sst2"):
        shutil.copytree(models / name, tmp_path / name)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "card.json").touch()
    reason = "tiny-sst2 does not do nli: load a bundle of the kind nli"
    with heedful.load(tmp_path / "tiny-sst2") as model, pytest.raises(WrongTask, match=reason):
        model.nli(PAIRS)


THREE = np.ones((2, 3), np.float32)
WHOLE = "give a whole number from 1"
USES: list[tuple[Callable[[Any], object], str]] = [
    (lambda model: model.nli(PAIRS), "tiny-sst2 does not do nli: load tiny-nli"),
    (lambda model: model.classify(["a"], ["b"]), "not do zero-shot: load tiny-flat, tiny-nli"),
    (lambda model: model.classify(["a"], ["b"], nli="tiny-nli"), "nli is str: give a model of"),
    (lambda model: model.encode(TEXTS, batch_size=0), f"batch_size is 0: {WHOLE}"),
    (lambda model: model.encode(TEXTS, batch_size=32.0), f"batch_size is 32.0: {WHOLE}"),
    (lambda model: model.predict(TEXTS, batch_size="32"), f"batch_size is '32': {WHOLE}"),
    (lambda model: model.predict("kids"), "texts is one string: give a list"),
    (lambda model: model.encode(TEXTS, truncate_dim=9), f"is 9, tiny-sst2 has 8: {WHOLE} to 8"),
    (lambda model: model.encode(TEXTS, truncate_dim=4.0), f"is 4.0, tiny-sst2 has 8: {WHOLE} to"),
    (lambda model: model.encode([], truncate_dim=0), f"is 0, tiny-sst2 has 8: {WHOLE} to 8"),
    (lambda model: model.encode(TEXTS, convert_to_tensor=True), r"torch\.from_numpy"),
    (lambda model: model.encode(TEXTS, precision="int4"), "give one of float32, int8, uint8, b"),
    (lambda model: model.fits(["kids", 3]), r"texts\[1\] is int"),
    (lambda model: model.explain("kids", alpha=-3), "alpha is -3: give 0 to 100"),
    (lambda model: model.explain("kids", alpha=float("nan")), "alpha is nan: give 0 to 100"),
    (lambda model: model.explain("kids", k=0, faithfulness=True), "k is 0: give at least 1"),
    (lambda model: model.explain("kids", priors={"word": 0.5}), "priors.word is 0.5: give True or"),
    (lambda model: model.explain("kids", options={}), "options is dict: leave it out, and give"),
    (lambda model: model.similarity(THREE, np.ones((2, 8))), "first has the width 3, second 8"),
    (lambda model: model.similarity(THREE, TEXTS), "second holds no vectors: give those of encode"),
    (lambda model: model.similarity(THREE[None], THREE), "first has 3 dimensions: give vectors of"),
]


@pytest.mark.parametrize(("use", "reason"), USES)
def test_wrong_uses_are_named(model: Model, use: Callable[[Any], object], reason: str) -> None:
    with pytest.raises(WrongTask if "not do" in reason else BadInput, match=reason):
        use(model)


def test_labels_of_the_callers(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each kind of model scores them, and both do together; answers to long lists are in order."""
    labels, texts = ["kids", "dog"], random_texts(100)
    with (
        heedful.load("tiny-flat", models=models) as embedding,
        heedful.load("tiny-nli", models=models) as nli,
    ):
        both = embedding.classify(texts, labels, nli=nli)
        cosine = embedding.classify(texts, labels)
        assert both != cosine
        assert cosine != nli.classify(texts, labels)
        assert all(sum(row.scores.values()) == pytest.approx(1) for row in both)
        monkeypatch.setattr(library_inputs, "CHUNK", 16)
        for answer, part in zip(both, embedding.classify(texts, labels, nli=nli), strict=True):
            assert part.scores == pytest.approx(answer.scores, abs=1e-4)
        assert embedding.classify([], labels) == []
        spaced, joined = (embedding.classify(texts, [f"two{gap}kids", "dog"]) for gap in " _")
        assert [row.scores["dog"] for row in spaced] == [row.scores["dog"] for row in joined]
        with pytest.raises(BadInput, match=r"labels\[1\] repeats labels\[0\]"):
            embedding.classify(texts, ["dog", "Dog"])
        with pytest.raises(BadInput, match="labels is one string"):
            embedding.classify(texts, "dog")
        with pytest.raises(WrongTask, match="tiny-nli is of the kind nli"):
            nli.classify(texts, labels, nli=nli)


@pytest.mark.parametrize("precision", get_args(Precision))
def test_vectors_in_fewer_bits(model: Model, precision: Precision) -> None:
    """tests/app/test_answers.py has their numbers."""
    vectors = model.encode(TEXTS, precision=precision)
    np.testing.assert_array_equal(vectors, as_precision(model.encode(TEXTS), precision))
    alone = [model.encode(text, precision=precision) for text in ("bad", ["bad"])]
    np.testing.assert_array_equal(alone[:1], alone[1])
    assert model.encode([], precision=precision).shape == (0, vectors.shape[1])

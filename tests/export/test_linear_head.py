"""Linear heads of vectors and of words on a frozen encoder: bundles that the service reads, with numpy's answers."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import heedful
from heedful.export import bag
from heedful.export.errors import ExportError, ParityError
from heedful.export.linear_head import LinearHead, Provenance, write_bundle
from heedful.export.typical import CENTROIDS, LEAST, typical
from heedful.runtime.answers import softmax
from heedful.runtime.bundles.bundle import Bundle, read
from heedful.runtime.bundles.card import TYPICAL, DataCard, TrustCard, TypicalCard
from heedful.runtime.bundles.typical import Typical
from heedful.runtime.errors import BundleError
from heedful.text.arrays import Floats
from heedful.text.vocab import Vocab
from heedful.training.bag import word_keys
from heedful.training.linear import Linear, Recipe, Texts
from tests.builders import DIMENSION, BuiltParser, build_bundle, build_pieces

TEXTS = [
    *("the dog is good", "two kids wash", "zebras wash zebras", "a man at the ballgame"),
    *("not good at all", "bad zebras", "the kids wash their hands", "bad"),
]
SPLIT = [text.split() for text in TEXTS]
TARGETS = np.eye(3, dtype=bool)[[0, 1, 2, 0, 1, 2, 1, 2]]
MOODS = ("sad", "calm", "glad")
MADE = Provenance(
    task="mood",
    data=DataCard(name="moods.csv", rows=3, licence="not stated", note="made up"),
    command="none",
    seed=1,
)
RNG = np.random.default_rng(0)
HEAD = LinearHead(RNG.normal(size=(3, DIMENSION)), RNG.normal(size=3), MOODS, normalize=True)


@pytest.mark.parametrize("base", ["tiny-flat", "tiny-sst2", "tiny-int8"])
def test_it_is_served_over_any_base(tmp_path: Path, pipeline: BuiltParser, base: str) -> None:
    """Embeddings, classifiers and pairs' models; int8 and explain graphs come along, the temperature does not."""
    graphs: dict[str, Any] = {"explain": True, "int8": True, "temperature": 3.0}
    kinds: dict[str, Any] = {"tiny-flat": {"kind": "embedding"}, "tiny-int8": {"kind": "nli"}}
    build_bundle(tmp_path, pipeline, name=base, **kinds.get(base, {}), **graphs)
    bundle = read(tmp_path / base)
    card = write_bundle(bundle, HEAD, MADE, tmp_path / "mood")
    assert (card.labels, card.kind, card.task) == (HEAD.labels, "classification", "mood")
    assert set(card.files) == {*bundle.card.files, "head.onnx"}
    assert card.training.vectors.endswith(f"{base} {bundle.card.version}")
    assert [data.name for data in card.training.data] == ["toy", "moods.csv"]
    where: dict[str, Any] = {"parser": pipeline.folder}
    with (
        heedful.load(tmp_path / base, **where) as plain,
        heedful.load(tmp_path / "mood", **where) as mood,
    ):
        expected = softmax(HEAD.logits(plain.encode(TEXTS)))
        np.testing.assert_allclose(mood.predict_proba(TEXTS), expected, atol=1e-5)


def test_what_is_said_of_the_base_is_not_said_of_it_and_a_wrong_head_is_not_written(
    tmp_path: Path, pipeline: BuiltParser
) -> None:
    build_bundle(tmp_path, pipeline)
    base = read(tmp_path / "tiny-sst2")
    cards: dict[str, Any] = {"typical": TypicalCard, "trust": TrustCard}
    said = {name: card.model_construct() for name, card in cards.items()}
    measured = base.card.model_copy(update=said)
    measured_base = replace(base, card=measured, files={**base.files, TYPICAL: b"an index"})
    card = write_bundle(measured_base, HEAD, MADE, tmp_path / "mood")
    assert (card.typical, card.trust) == (None, None)
    broken = LinearHead(HEAD.coefficients * np.nan, HEAD.intercepts, HEAD.labels)
    with pytest.raises(ParityError, match="away from numpy"):
        write_bundle(base, broken, MADE, tmp_path / "wrong")
    twice = LinearHead(HEAD.coefficients, HEAD.intercepts, ("sad", "sad", "glad"))
    with pytest.raises(BundleError, match="all different"):
        write_bundle(base, twice, MADE, tmp_path / "wrong")
    assert not (tmp_path / "wrong").exists()


@pytest.mark.parametrize("kind", ["words", "int8", "pieces"])
@pytest.mark.parametrize("reads_vectors", [True, False])
def test_a_bag_of_words_is_served_as_numpy_answers(
    kind: str, reads_vectors: bool, tmp_path: Path, pipeline: BuiltParser
) -> None:
    """The base may have a tree, int8 and explain graphs, or pieces; words that it lacks count too."""
    rounded = kind == "int8"
    graphs: dict[str, Any] = {"tree": kind != "pieces", "explain": rounded, "int8": rounded}
    pieces = build_pieces() if kind == "pieces" else None
    build_bundle(tmp_path, pipeline, name="tiny-base", kind="embedding", pieces=pieces, **graphs)
    base = read(tmp_path / "tiny-base")
    lexicon = base.vocab
    if isinstance(lexicon, Vocab):
        lexicon = Vocab([*lexicon.words[2:], "zebras", "all"])
    sentences = [lexicon.sentence(text, np.arange(len(text))) for text in SPLIT]
    keys = [word_keys(one, len(lexicon)) for one in sentences]
    with heedful.load(tmp_path / "tiny-base", parser=pipeline.folder) as model:
        texts = Texts(keys, model.encode(TEXTS))
    recipe = Recipe(words=True, vectors=reads_vectors, strength=10)
    linear = replace(Linear.fit(recipe, texts, TARGETS), temperature=2.0)
    made = (bag.with_words if reads_vectors else bag.words_only)(base, lexicon, linear)
    assert bag.check(made, linear, sentences) < 1e-4
    write_bundle(made, bag.head_of(linear, MOODS), MADE, tmp_path / "tiny-mood")
    with heedful.load(tmp_path / "tiny-mood", parser=pipeline.folder) as model:
        found = model.predict_proba(TEXTS)
        np.testing.assert_allclose(found, softmax(linear.logits(texts)), atol=1e-4)
        np.testing.assert_allclose(model.predict_proba(TEXTS[2:3])[0], found[2], atol=1e-5)
        if rounded and reads_vectors:
            assert model.explain(TEXTS[0]).tokens


def test_a_composed_word_has_its_own_key(tmp_path: Path, pipeline: BuiltParser) -> None:
    """Words that are composed from their spelling are distinguished, in numpy and in the graph."""
    rows = 2**12
    vocab = Vocab(["the", "dog"], composed=rows)
    sentences = [vocab.sentence(text, np.arange(len(text))) for text in SPLIT]
    keys = [word_keys(one, len(vocab)) for one in sentences]
    distinct = {key for each in keys for key in each.tolist()}
    assert len(distinct) == len({word for text in SPLIT for word in text})
    build_bundle(tmp_path, pipeline, name="tiny-base", kind="embedding", tree=False)
    base = read(tmp_path / "tiny-base")
    card = base.card.model_copy(update={"composed": rows})
    texts = Texts(keys, np.zeros((len(TEXTS), 8), np.float32))
    linear, wrong = (
        Linear.fit(Recipe(words=True, vectors=False, strength=strength), texts, TARGETS)
        for strength in (1, 5)
    )
    made = bag.words_only(Bundle(card, base.files, vocab), vocab, linear)
    assert bag.check(made, linear, sentences) < 1e-4
    with pytest.raises(ParityError, match="away from numpy"):
        bag.check(made, wrong, sentences)


def near(axis: int, count: int, seed: int) -> Floats:
    """(count, 8) vectors around one axis."""
    noise = np.random.default_rng(seed).normal(scale=0.2, size=(count, 8))
    vectors: Floats = (np.eye(8)[axis] + noise).astype(np.float32)
    return vectors


def test_a_share_is_that_of_training_sentences_farther_away() -> None:
    """Half of unseen sentences lie farther than the index's median, and strangers farther than all."""
    index = typical(near(0, 2000, 1))
    assert index.centroids.shape == (CENTROIDS, 8)
    assert index.share(index.centroids).min() > 0.99  # nothing is nearer than a centroid itself
    assert np.median(index.share(near(0, 2000, 2))) == pytest.approx(0.5, abs=0.05)
    assert index.share(near(5, 100, 3)).max() < 0.01
    again = Typical.read(index.to_bytes(), 8)
    np.testing.assert_array_equal(again.share(near(0, 9, 4)), index.share(near(0, 9, 4)))
    with pytest.raises(ExportError, match=f"{LEAST - 1} training sentences are too few"):
        typical(near(0, LEAST - 1, 1))

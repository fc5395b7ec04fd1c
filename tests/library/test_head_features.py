"""Values that an encoder gives only for its head are in no sentence vector."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import heedful
from heedful.export.linear_head import LinearHead, Provenance, write_bundle
from heedful.export.typical import CENTROIDS, typical
from heedful.runtime.answers import softmax
from heedful.runtime.bundles.bundle import read
from heedful.runtime.bundles.card import DataCard
from heedful.runtime.explain.run import ExplainOptions
from tests.builders import DIMENSION, BuiltParser, build_bundle, random_texts

ADDED = 2
SIZE = DIMENSION - ADDED
SIZES: dict[str, Any] = {"dimension": SIZE, "head_features": ADDED}
TEXTS = ["two kids wash", "the dog is not good", "bad"]
PAIRS = [("two kids wash", "kids wash hands"), ("the dog is bad", "the dog is good")]


def test_the_head_reads_them_and_the_sentence_vector_ends_before_them(
    tmp_path: Path, pipeline: BuiltParser
) -> None:
    build_bundle(tmp_path, pipeline, name="tiny-nli", kind="nli", explain=True)
    build_bundle(tmp_path, pipeline, name="wide-nli", kind="nli", explain=True, **SIZES)
    load = partial(heedful.load, models=tmp_path, parser=pipeline.folder)
    with load("tiny-nli") as plain, load("wide-nli") as wide:
        assert wide.nli(PAIRS) == plain.nli(PAIRS)
        vectors_with_features = plain.encode(TEXTS, normalize_embeddings=False)
        vectors = wide.encode(TEXTS, normalize_embeddings=False)
        np.testing.assert_array_equal(vectors, vectors_with_features[:, :SIZE])
        assert wide.encode([]).shape == (0, SIZE)
        wanted = ExplainOptions(ablation=True, evidence=True)
        pair = [model.explain(*PAIRS[0], wanted).answer["evidence"] for model in (plain, wide)]
        assert repr(pair[0]) == repr(pair[1])
        single = [model.explain(TEXTS[1], options=wanted).answer for model in (plain, wide)]
        cosines = [answer["ablation"][0]["cosine"] for answer in single]
        assert cosines[0] != cosines[1]
        index = typical(wide.encode(random_texts(4 * CENTROIDS)))
        np.testing.assert_array_equal(index.share(vectors_with_features), index.share(vectors))
    head = LinearHead(np.eye(2, SIZE), np.arange(2.0), ("sad", "glad"))
    data = DataCard(name="m", rows=3, licence="none", note="")
    mood = tmp_path / "mood"
    write_bundle(read(tmp_path / "wide-nli"), head, Provenance("mood", data, "none", seed=1), mood)
    with load("mood") as classifier:  # a head over them reads the sentence vector
        expected = softmax(head.logits(vectors))
        np.testing.assert_allclose(classifier.predict_proba(TEXTS), expected, atol=1e-5)

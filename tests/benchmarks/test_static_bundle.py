"""The static table behind our server gives the mean of the word vectors, and nothing of the encoder."""

from pathlib import Path

import numpy as np

import heedful
from benchmarks import static_bundle
from heedful.runtime.bundles.bundle import read
from tests.shipped import BUNDLES
from tools.suites.word_means import word_means

SOURCE = BUNDLES / "disan-sst5"
TEXTS = ["a film", "two kids wash their hands", "a bad film of a good book"]
UNLISTED = "film xqzzv"


def test_its_vectors_are_the_means_of_the_word_vectors(tmp_path: Path) -> None:
    static_bundle.write(SOURCE, tmp_path / "static")
    model = heedful.load(tmp_path / "static", parser=BUNDLES / "parser")
    means = word_means(read(SOURCE))([*TEXTS, "film"])
    expected = means / np.linalg.norm(means, axis=1, keepdims=True)
    # An unlisted word has the vector zero, which leaves the direction.
    np.testing.assert_allclose(model.encode([*TEXTS, UNLISTED]), expected, atol=2e-3)

"""A bundle whose unlisted words are composed: exported, read back, and asked alone and in batches."""

import numpy as np
import onnxruntime
import pytest

from heedful.export.bundle import make
from heedful.export.weight_storage import Storage
from heedful.runtime.bundles.bundle import Bundle
from heedful.runtime.bundles.card import ENCODER
from heedful.runtime.engine.graphs import encoder_feeds
from heedful.text.arrays import Floats
from heedful.text.batch import collate
from tests.export.trained import composed

TEXTS = (
    ["word1", "iOS", "word2", "18.2"],
    ["word1", "ios", "word2", "18.3"],
    ["word3"],
    ["你好世界", "awsome"],
    ["Привет", "word4", "awesome"],
)


def vectors(bundle: Bundle, texts: list[list[str]]) -> Floats:
    session = onnxruntime.InferenceSession(
        bundle.files[ENCODER], providers=["CPUExecutionProvider"]
    )
    sentences = [bundle.vocab.sentence(text, np.arange(len(text))) for text in texts]
    (found,) = session.run(None, encoder_feeds(bundle.card, collate(sentences)))
    return np.asarray(found, np.float32)


def test_a_vector_does_not_depend_on_the_batch(open_words: Bundle) -> None:
    together = vectors(open_words, list(TEXTS))
    for text, row in zip(TEXTS, together, strict=True):
        np.testing.assert_allclose(vectors(open_words, [text])[0], row, atol=1e-5)


def test_no_two_unlisted_words_have_one_vector(open_words: Bundle) -> None:
    words = ["iOS", "ios", "18.2", "18.3", "你好世界", "Привет", "awsome", "awesome"]
    found = vectors(open_words, [[word] for word in words])
    for i in range(len(words)):
        for j in range(i):
            assert np.abs(found[i] - found[j]).max() > 1e-4, (words[i], words[j])


@pytest.mark.parametrize("storage", ["normal", "small"])
def test_every_product_of_its_int8_graph_reads_the_same_bits_in_any_batch(storage: Storage) -> None:
    """A composed word's vector too, the only one of a sentence or not."""
    int8 = make(composed(), "open-words", storage, int8=True).card.int8
    assert int8 is not None
    assert (int8.products, int8.left) == (12, 0)

"""A bundle whose unlisted words are composed: exported, read back, and asked alone and in batches."""

from dataclasses import replace

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

from heedful.export.bundle import TrainedModel, export_bundle, make
from heedful.export.weight_storage import Storage
from heedful.models.composed_words import ComposedWords
from heedful.models.sentence import SentenceEncoder
from heedful.runtime.bundles.bundle import Bundle, read
from heedful.runtime.bundles.card import ENCODER
from heedful.runtime.engine.graphs import encoder_feeds
from heedful.text.arrays import Floats
from heedful.text.batch import Sentence, collate
from heedful.text.composition import SIGNATURE
from heedful.text.vocab import Vocab
from tests.export.trained import trained

ROWS = 2048
TEXTS = (
    ["word1", "iOS", "word2", "18.2"],
    ["word1", "ios", "word2", "18.3"],
    ["word3"],
    ["你好世界", "awsome"],
    ["Привет", "word4", "awesome"],
)


def composed() -> TrainedModel:
    made = trained("classification")
    table = made.model.embedding
    assert isinstance(table, nn.Embedding)
    assert isinstance(made.vocab, Vocab)
    words = ComposedWords(table, rows=ROWS, signature=SIGNATURE)
    words.reset(torch.Generator().manual_seed(1))
    vocab = Vocab(made.vocab.words[2:], ROWS)
    return replace(made, model=SentenceEncoder(words, made.model.encoder), vocab=vocab)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    folder = tmp_path_factory.mktemp("composed") / "open-words"
    export_bundle(composed(), folder)
    return read(folder)


def vectors(bundle: Bundle, texts: list[list[str]]) -> Floats:
    session = onnxruntime.InferenceSession(
        bundle.files[ENCODER], providers=["CPUExecutionProvider"]
    )
    sentences = [bundle.vocab.sentence(text, np.arange(len(text))) for text in texts]
    (found,) = session.run(None, encoder_feeds(bundle.card, collate(sentences)))
    return np.asarray(found, np.float32)


def test_the_card_and_the_vocabulary_say_so(bundle: Bundle) -> None:
    assert bundle.card.composed == ROWS
    assert isinstance(bundle.vocab, Vocab)
    assert bundle.vocab.composed == ROWS


def test_a_vector_does_not_depend_on_the_batch(bundle: Bundle) -> None:
    together = vectors(bundle, list(TEXTS))
    for text, row in zip(TEXTS, together, strict=True):
        np.testing.assert_allclose(vectors(bundle, [text])[0], row, atol=1e-5)


def test_no_two_unlisted_words_have_one_vector(bundle: Bundle) -> None:
    words = ["iOS", "ios", "18.2", "18.3", "你好世界", "Привет", "awsome", "awesome"]
    found = vectors(bundle, [[word] for word in words])
    for i in range(len(words)):
        for j in range(i):
            assert np.abs(found[i] - found[j]).max() > 1e-4, (words[i], words[j])


def test_the_graph_is_the_torch_model(bundle: Bundle) -> None:
    made = composed()
    batch = collate([made.vocab.sentence(text, np.arange(len(text))) for text in TEXTS])
    assert batch.features is not None
    with torch.inference_mode():
        expected = made.model.eval()(
            torch.from_numpy(batch.ids),
            torch.from_numpy(batch.lengths),
            torch.from_numpy(batch.heads),
            torch.tensor(bundle.card.alpha),
            features=torch.from_numpy(batch.features),
        )
    found = vectors(bundle, list(TEXTS))
    np.testing.assert_allclose(found, expected.numpy(), atol=0.02)  # tables in int8


def test_a_listed_sentence_needs_no_features(bundle: Bundle) -> None:
    listed = Sentence(np.array([2, 3]), np.arange(2))
    feeds = encoder_feeds(bundle.card, collate([listed]))
    assert feeds["features"].shape[0] == 1


@pytest.mark.parametrize("storage", ["normal", "small"])
def test_every_product_of_its_int8_graph_reads_the_same_bits_in_any_batch(storage: Storage) -> None:
    """A composed word's vector too, the only one of a sentence or not."""
    int8 = make(composed(), "open-words", storage, int8=True).card.int8
    assert int8 is not None
    assert (int8.products, int8.left) == (12, 0)

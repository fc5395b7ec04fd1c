"""Words outside the list: no two are read alike, in any script, and spelling says which are near."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from heedful.text import composition
from heedful.text.batch import collate
from heedful.text.composition import FEATURES, SIGNATURE, SIGNATURES, features, shape
from heedful.text.vocab import UNKNOWN, Vocab

ROWS = 4096
HOSTILE = (
    "iOS", "ios", "IOS", "18.2", "18.3", "182", "COVID-19", "covid-19", "OOMKilled", "awsome", "awesome",
    "你好世界", "你好", "Привет", "привет", "مرحبا", "नमस्ते", "😀", "😀😀", "é", "e\u0301", "ﬁ", "fi", "İ", "ı", "ß",
    "SS", "a" * 500, "a" * 501, "ab" * 200, "ba" * 200, "\u200d", "\ud800", "0", "00", "٠", "x", "X", "'ve", "<br",
    "<pad>", "<unk>",
)  # fmt: skip
words = st.text(st.characters(categories=("L", "N", "M")), min_size=1, max_size=40)


def test_hostile_words_all_differ() -> None:
    assert len({features(word, ROWS) for word in HOSTILE}) == len(HOSTILE)


@given(words, words)
def test_two_words_of_any_script_differ(one: str, other: str) -> None:
    assume(one != other)
    assert features(one, ROWS) != features(other, ROWS)


@given(words)
def test_rows_are_of_the_table_and_the_signature_stands_last(word: str) -> None:
    found = np.array(features(word, ROWS))
    assert found.shape == (FEATURES,)
    assert ((found >= 0) & (found < ROWS)).all()
    signature, spelled = found[-SIGNATURE:], found[:-SIGNATURE]
    assert ((signature >= 1) & (signature <= SIGNATURES)).all()
    assert ((spelled == 0) | (spelled > SIGNATURES)).all()
    assert spelled[0] > 0


def test_a_misspelling_shares_more_with_its_word_than_another_word_does() -> None:
    word, near, far = (set(features(one, 2**20)) for one in ("awesome", "awsome", "terrible"))
    assert len(word & near) > len(word & far) + 3


@pytest.mark.parametrize(
    ("word", "expected"),
    [("iOS", "xXX"), ("18.2", "dd.d"), ("COVID-19", "XXXX-dd"), ("awesome", "xxxx"), ("é", "x")],
)
def test_shape(word: str, expected: str) -> None:
    assert shape(word) == expected


def test_a_sentence_numbers_its_composed_words_and_a_batch_renumbers_them() -> None:
    vocab = Vocab(["film", "good"], ROWS)
    one = vocab.sentence(["Good", "iOS", "film", "18.2"], np.arange(4))
    other = vocab.sentence(["awsome", "good"], np.arange(2))
    listed = vocab.sentence(["film"], np.arange(1))
    assert one.ids.tolist() == [3, -1, 2, -2]
    assert listed.features is None
    assert vocab.known(one).tolist() == [True, False, True, False]
    assert vocab.word_ids(one).tolist() == [3, UNKNOWN, 2, UNKNOWN]
    batch = collate([one, listed, other])
    assert batch.ids.tolist() == [[3, -1, 2, -2], [2, 0, 0, 0], [-3, 3, 0, 0]]
    assert batch.features is not None
    expected = composition.matrix(["iOS", "18.2", "awsome"], ROWS)
    np.testing.assert_array_equal(batch.features, expected)
    assert collate([listed]).features is None


def test_sentences_of_different_composed_words_have_different_keys() -> None:
    vocab = Vocab(["film"], ROWS)
    keys = {vocab.sentence([word], np.arange(1)).key for word in ("iOS", "ios", "film")}
    assert len(keys) == 3

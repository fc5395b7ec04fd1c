"""Words -> pieces: each belongs to one word, and a loss is reported."""

import weakref
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models

from heedful.text.pieces import MAX_PIECES, Pieces
from tests.builders import build_pieces
from tests.forests import chain

CLS, SEP, UNK = 2, 3, 1
PIECES = build_pieces()
words = st.lists(st.text(st.characters(exclude_categories=["Z", "Cs"]), min_size=1), min_size=1)


@given(words)
def test_every_word_has_pieces_and_every_piece_a_word(tokens: list[str]) -> None:
    ids, counts = PIECES.split(tokens)
    assert counts.shape == (len(tokens),)
    assert counts.min() >= 1
    assert counts.sum() == len(ids)
    separate = [PIECES.split([token])[0] for token in tokens]
    np.testing.assert_array_equal(ids, np.concatenate(separate))


def test_a_word_is_split_into_its_longest_pieces() -> None:
    ids, counts = PIECES.split(["Two", "ballgame", "héd"])
    assert counts.tolist() == [1, 2, 3]
    by_word = [PIECES.split([word])[0].tolist() for word in ("two", "ball")]
    assert ids[:2].tolist() == by_word[0] + by_word[1]
    assert UNK not in ids  # accents are stripped
    ids, counts = PIECES.split(["[SEP]", "[CLS]", "[UNK]"])  # special pieces in a text are text
    assert not set(ids.tolist()) & {CLS, SEP}
    assert counts.min() == 5
    for limit, count in ((512, MAX_PIECES), (MAX_PIECES + 2, MAX_PIECES), (MAX_PIECES + 1, 1)):
        assert build_pieces(limit).split(["," * MAX_PIECES])[1].tolist() == [count]
    gone = weakref.ref(build_pieces())
    assert gone() is None, "a cycle would outlive a reload"


@pytest.mark.parametrize(
    ("word", "count"),
    [("\u200d", 1), ("\x07", 1), ("中文", 2), ("a" * 101, 1), ("a." * 51, 1), ("," * 500, 1)],
    ids=ascii,
)
def test_what_cannot_be_split_is_unknown(word: str, count: int) -> None:
    long = build_pieces(512)
    ids, counts = long.split(["a", word, "dog"])
    assert counts.tolist() == [1, count, 1]
    assert ids[1:-1].tolist() == [UNK] * count
    sentence = long.sentence(["a", word, "dog"], np.array([0, 0, 0]))
    assert long.known(sentence).tolist() == [True, False, True]


def test_a_sentence_stands_between_cls_and_sep() -> None:
    tokens, heads = ["the", "ballgame", "wash"], np.array([1, 2, 2])
    sentence, (ids, counts) = PIECES.sentence(tokens, heads), PIECES.split(tokens)
    assert sentence.ids.tolist() == [CLS, *ids, SEP]
    np.testing.assert_array_equal(sentence.heads, heads)
    np.testing.assert_array_equal(sentence.pieces, counts)
    assert len(sentence) == 3
    assert PIECES.word_ids(sentence).tolist() == [ids[0], ids[1], ids[3]]


@given(st.lists(st.sampled_from(["a", "hands", "unheard", "ballgame", "," * 38]), min_size=1))
def test_as_many_words_fit_as_their_pieces_have_room(tokens: list[str]) -> None:
    fitting = PIECES.fitting(tokens)
    assert fitting >= 1
    assert len(PIECES.sentence(tokens[:fitting], chain(fitting)).ids) <= PIECES.limit
    if fitting < len(tokens):
        more = PIECES.sentence(tokens[: fitting + 1], chain(fitting + 1))
        assert len(more.ids) > PIECES.limit


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    first, second = tmp_path / "tokenizer.json", tmp_path / "second.json"
    PIECES.save(first)
    again = Pieces.read(first.read_bytes())
    assert (again.limit, len(again)) == (PIECES.limit, len(PIECES))
    tokens = ["Two", "kids", "[SEP]", "unheard", *["hands"] * 60]  # beyond the limit: none is cut
    for before, after in zip(PIECES.split(tokens), again.split(tokens), strict=True):
        np.testing.assert_array_equal(before, after)
    again.save(second)
    assert second.read_bytes() == first.read_bytes()


def test_what_is_no_tokenizer_is_refused() -> None:
    for content, reason in (
        ("{", "is not a tokenizer: "),
        (Tokenizer(models.WordPiece({"[UNK]": 0})).to_str(), "has no limit of pieces"),
    ):
        with pytest.raises(ValueError, match=reason):
            Pieces.read(content.encode())
    assert build_pieces(3).fitting(["a", "a"]) == 1
    with pytest.raises(ValueError, match="2 pieces hold no word"):
        build_pieces(2)
    with pytest.raises(ValueError, match=r"the tokenizer has no \[SEP\]"):
        Pieces(Tokenizer(models.WordPiece({"[UNK]": 0, "[CLS]": 1})), 8)

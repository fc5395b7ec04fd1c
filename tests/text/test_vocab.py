"""Words and their ids; those outside the list are composed: no two are read alike, in any script."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from heedful.text import composition
from heedful.text.batch import PAD, collate
from heedful.text.composition import FEATURES, SIGNATURE, SIGNATURES, features, shape
from heedful.text.hashed_words import product
from heedful.text.plain import CACHED_WORDS, MAX_CACHED_LENGTH, plain_word
from heedful.text.vocab import SPECIAL, UNKNOWN, Vocab

words = st.text(min_size=1).map(str.lower).filter(lambda word: word.split() == [word])
vocabularies = st.lists(words.filter(lambda word: word not in SPECIAL), unique=True, max_size=20)


@settings(max_examples=100)
@given(vocabularies)
def test_a_saved_vocabulary_is_read_back_and_a_words_id_is_its_line(
    tmp_path_factory: pytest.TempPathFactory, words: list[str]
) -> None:
    path = tmp_path_factory.mktemp("vocab") / "vocab.txt"
    Vocab(words).save(path)
    vocab = Vocab.read(path.read_bytes())
    assert vocab.words == (*SPECIAL, *words)
    assert len(vocab) == len(words) + 2
    lines = {word: line for line, word in enumerate(words, 2) if plain_word(word).lower() == word}
    assert vocab.ids(list(lines)).tolist() == list(lines.values())
    assert all(word in vocab for word in lines)


@pytest.mark.parametrize(
    ("listed", "tokens"),
    [
        ("dog cat", "Dog=dog CAT=cat bird= <pad>= <unk>= <PAD>= \u00a0="),
        ("n't fine ’s 's — nt", "n’t=n't N’T=n't nt=n't n`t=n't ﬁne=fine ’s='s —=— it’s="),
        ("so to too good aaa", "sooooo=so tooo=too GOOOOD=good aaa=aaa aaaa= 1000= ...="),
    ],
)
def test_a_token_is_looked_up_in_plain_lower_case_and_short(listed: str, tokens: str) -> None:
    """A plain spelling is found first; `token=` is unknown."""
    vocab = Vocab(listed.split())
    pairs = [token.split("=") for token in tokens.split(" ")]
    words = [token for token, _ in pairs]
    ids = vocab.ids(words)
    assert PAD not in ids
    assert [vocab.words[i] if i != UNKNOWN else "" for i in ids] == [word for _, word in pairs]
    assert [word in vocab for word in words] == [bool(word) for _, word in pairs]
    assert vocab.ids([]).shape == (0,)


NO_WORDS = ("", " ", "two words", "line\nbreak", "tab\t", "\x85", "a\u2028b", "\r")


def test_what_is_no_word_and_no_vocabulary_is_refused() -> None:
    """As a file of a bundle: tests/runtime/test_bundle.py."""
    for word in NO_WORDS:
        with pytest.raises(ValueError, match="not a word"):
            Vocab(["dog", word])
    for content in ("", "<pad>\n<unk>\ndog"):  # cut in the middle of a line
        with pytest.raises(ValueError, match="not a vocabulary"):
            Vocab.read(content.encode())


ROWS = 4096
HOSTILE = (
    "iOS", "ios", "IOS", "18.2", "18.3", "182", "COVID-19", "covid-19", "OOMKilled", "awsome", "awesome",
    "你好世界", "你好", "Привет", "привет", "مرحبا", "नमस्ते", "😀", "😀😀", "é", "e\u0301", "ﬁ", "fi", "İ", "ı", "ß",
    "SS", "a" * 500, "a" * 501, "ab" * 200, "ba" * 200, "\u200d", "\ud800", "0", "00", "٠", "x", "X", "'ve", "<br",
    "<pad>", "<unk>", "😡", "→", "★★★", "@anna", "@ben", "https://a.org/b", "www.a.org", "ben@a.org",
)  # fmt: skip
SYMBOLS = ("😀", *HOSTILE[-8:])
spelled = st.text(st.characters(categories=("L", "N", "M")), min_size=1, max_size=40)


@given(spelled, spelled)
def test_two_words_of_any_script_differ(word: str, other: str) -> None:
    """The rows are of the table, and the signature stands last."""
    rows = np.array(features(word, ROWS))
    assert rows.shape == (FEATURES,)
    assert ((rows >= 0) & (rows < ROWS)).all()
    signature, spelling = rows[-SIGNATURE:], rows[:-SIGNATURE]
    assert ((signature >= 1) & (signature <= SIGNATURES)).all()
    assert ((spelling == 0) | (spelling > SIGNATURES)).all()
    assert spelling[0] > 0
    assume(word != other)
    assert features(word, ROWS) != features(other, ROWS)


def test_a_misspelling_shares_more_with_its_word_than_another_word_does() -> None:
    assert len({features(word, ROWS) for word in HOSTILE}) == len(HOSTILE)
    spellings = {features(symbol, ROWS)[:-SIGNATURE] for symbol in (*SYMBOLS, ".")}
    assert len(spellings) == 1  # a symbol is composed like a full stop
    word, near, far = (set(features(one, 2**20)) for one in ("awesome", "awsome", "terrible"))
    assert len(word & near) > len(word & far) + 3
    shapes = {"iOS": "xXX", "18.2": "dd.d", "COVID-19": "XXXX-dd", "awesome": "xxxx", "é": "x"}
    assert {word: shape(word) for word in shapes} == shapes


def test_a_batch_has_the_features_of_its_composed_words_once_and_in_order() -> None:
    vocab = Vocab(["film", "good"], ROWS)
    texts = ["Good iOS film 18.2", "film", "awsome good"]
    sentences = [vocab.sentence(text.split(), np.arange(len(text.split()))) for text in texts]
    batch = collate(sentences)
    assert batch.ids.tolist() == [[3, -1, 2, -2], [2, 0, 0, 0], [-3, 3, 0, 0]]
    expected = composition.matrix(["iOS", "18.2", "awsome"], ROWS)
    np.testing.assert_array_equal(batch.features, expected)
    assert collate(sentences[1:2]).features is None
    keys = {vocab.sentence([word], np.arange(1)).key for word in ("iOS", "ios", "film")}
    assert len(keys) == 3


def test_what_it_remembers_of_strangers_is_bounded() -> None:
    vocab = Vocab(["dog"])
    vocab.ids(["x" * (MAX_CACHED_LENGTH + 1), "x" * MAX_CACHED_LENGTH])
    assert list(vocab._cache) == ["x" * MAX_CACHED_LENGTH]
    vocab.ids([f"x{i}" for i in range(CACHED_WORDS)])
    assert len(vocab._cache) <= CACHED_WORDS
    assert vocab.ids(["Dog", "x"]).tolist() == [2, UNKNOWN]


@pytest.mark.parametrize("count", [0, 1, 65])
def test_the_product_of_hashed_words_is_numpys(count: int) -> None:
    random = np.random.default_rng(1)
    rows = random.standard_normal((count, 900))
    matrix = random.standard_normal((900, 50))
    np.testing.assert_allclose(product(rows, matrix), np.einsum("nd,de->ne", rows, matrix))

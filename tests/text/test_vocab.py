import gc
import weakref
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.text.batch import PAD
from heedful.text.plain import LONGEST_KEPT, REMEMBERED_WORDS, plain_word
from heedful.text.vocab import SPECIAL, UNKNOWN, Vocab

words = st.text(min_size=1).map(str.lower).filter(lambda word: word.split() == [word])
vocabularies = st.lists(words.filter(lambda word: word not in SPECIAL), unique=True, max_size=20)


@settings(max_examples=100)
@given(vocabularies)
def test_a_saved_vocabulary_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, held: list[str]
) -> None:
    path = tmp_path_factory.mktemp("vocab") / "vocab.txt"
    Vocab(held).save(path)
    assert Vocab.load(path).words == (*SPECIAL, *held)


@given(vocabularies.map(lambda held: [word for word in held if plain_word(word).lower() == word]))
def test_each_word_has_its_line_number(held: list[str]) -> None:
    vocab = Vocab(held)
    assert len(vocab) == len(held) + 2
    assert vocab.ids(held).tolist() == list(range(2, len(held) + 2))
    assert all(word in vocab for word in held)


def test_case_does_not_count_and_strangers_are_unknown() -> None:
    vocab = Vocab(["dog", "cat"])
    ids = vocab.ids(["Dog", "CAT", "bird", "<pad>", "<unk>", "<PAD>", " "])
    assert ids.tolist() == [2, 3, *[UNKNOWN] * 5]
    assert PAD not in ids
    assert "DOG" in vocab
    assert not {"bird", "<pad>", "<unk>"} & {word for word in ("bird", *SPECIAL) if word in vocab}
    assert vocab.ids([]).shape == (0,)


@pytest.mark.parametrize(
    "word", ["", " ", "two words", "line\nbreak", "tab\t", "\x85", "a\u2028b", "\r"]
)
def test_what_is_no_word_is_refused(word: str) -> None:
    with pytest.raises(ValueError, match="not a word"):
        Vocab(["dog", word])


@pytest.mark.parametrize("held", [["dog", "dog"], ["<pad>"], ["<unk>"]])
def test_a_doubled_word_is_refused(held: list[str]) -> None:
    with pytest.raises(ValueError, match="twice"):
        Vocab(held)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not a vocabulary"),
        (b"dog\ncat\n", "not a vocabulary"),
        (b"<pad>\n<unk>\ndog", "not a vocabulary"),  # cut in the middle of a line
        (b"<pad>\n<unk>\n\ndog\n", "not a word"),
        (b"<pad>\n<unk>\ndog\ndog\n", "twice"),
        (b"<pad>\n<unk>\n\xff\n", "utf-8"),
    ],
)
def test_a_broken_file_is_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "vocab.txt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=reason):
        Vocab.load(path)


def test_what_it_remembers_of_strangers_is_bounded() -> None:
    vocab = Vocab(["dog"])
    vocab.ids(["x" * (LONGEST_KEPT + 1), "x" * LONGEST_KEPT])
    assert list(vocab._seen) == ["x" * LONGEST_KEPT]
    vocab.ids([f"x{i}" for i in range(REMEMBERED_WORDS)])
    assert len(vocab._seen) <= REMEMBERED_WORDS
    assert vocab.ids(["Dog", "x"]).tolist() == [2, UNKNOWN]


def test_it_is_freed_without_a_garbage_collection() -> None:
    """A reload replaces vocabularies, and the start has excluded them from the collection."""
    gc.disable()
    try:
        vocab = Vocab(["dog"])
        vocab.ids(["dog", "cat"])
        held = weakref.ref(vocab)
        del vocab
        assert held() is None
    finally:
        gc.enable()

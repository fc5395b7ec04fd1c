"""Initial vectors of emoji (training.emoji_vectors)."""

from collections import Counter

import numpy as np

from heedful.text.vocab import Vocab
from heedful.training.emoji_vectors import NamedEmoji, new_emoji
from heedful.training.vectors import Table

WORDS = {"broken": 0, "heart": 1, "pouting": 2, "crying": 3, "👍": 4}
TABLE = Table(np.eye(5, dtype=np.float32), WORDS)


def test_an_emoji_has_the_mean_of_the_words_of_its_name() -> None:
    read = ["💔", "❤", "😡", "😭", "broken"]  # loudly has no vector, face and black are left out
    source = NamedEmoji(TABLE)
    assert source.has(read).all()
    half = [0.5, 0.5, 0, 0, 0]
    expected = [half, np.eye(5)[1], np.eye(5)[2], np.eye(5)[3], np.eye(5)[0]]
    assert np.array_equal(source.look_up(read), np.array(expected, np.float32))


def test_the_source_s_vector_of_an_emoji_stays_and_others_have_none() -> None:
    read = ["👍", "🍕", "é", "heartless"]
    source = NamedEmoji(TABLE)
    assert source.has(read).tolist() == [True, False, False, False]
    assert np.array_equal(source.look_up(read[:1]), TABLE.look_up(read[:1]))


def test_frequent_emoji_that_are_not_listed_are_new_words() -> None:
    counts = Counter({"💔": 3, "😡": 2, "👍": 3, "🍕": 9, "heart": 9, "©": 9, "→": 9})
    lexicon = Vocab(["heart", "👍"], 14336)
    assert new_emoji(lexicon, counts, TABLE, 3) == ["💔"]

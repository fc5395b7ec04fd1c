"""text.spelling: words that a vocabulary lacks are read as the listed words that were meant."""

from itertools import islice, product

import pytest

from heedful.text.parse import Parser
from heedful.text.plain import CACHED_WORDS
from heedful.text.spelling import Corrections, edits
from heedful.text.vocab import Vocab
from tests.text.test_parse import read, spans

LISTED = ["we", "the", "do", "not", "receive", "whether", "weather", "money", "i", "."]
READ_AS = """
we recieve the mony. => we receive the mony .
wheather => whether
I DO NOT Recieve the moneyy. => I DO NOT Recieve the money .
the weathers do not recieve => the weathers do not receive
the weatherr of of of => the weatherr of of of
wir haben die moneyy nicht, the money => wir haben die moneyy nicht , the money
"""


@pytest.mark.parametrize("case", READ_AS.strip().splitlines())
def test_misspelled_words_are_corrected(parser: Parser, case: str) -> None:
    """Not short words, names, English words, nor texts of other words or languages; nor a client's tree."""
    typed, expected = case.split(" => ")
    text = read(parser, typed)
    as_typed, corrected = Vocab(LISTED).corrected([text, text], [False, True])
    assert as_typed is text
    assert list(corrected.tokens) == expected.split()
    assert spans(corrected) == text.tokens


def test_it_remembers_few_words() -> None:
    corrections = Corrections({"qqqqq": 2})
    for letters in islice(product("qxz", repeat=10), CACHED_WORDS + 9):
        corrections["".join(letters)]
    assert 0 < len(corrections) < CACHED_WORDS


def test_edits_are_the_words_at_a_distance_of_one() -> None:
    """By the recursion of the restricted Damerau-Levenshtein distance."""

    def distance(a: str, b: str) -> int:
        if not a or not b:
            return len(a) + len(b)
        least = distance(a[1:], b[1:]) + (a[0] != b[0])
        if a[:2] == b[1::-1] and len(a) > 1 < len(b):
            least = min(least, 1 + distance(a[2:], b[2:]))
        return min(least, 1 + distance(a[1:], b), 1 + distance(a, b[1:]))

    words = ["".join(letters) for size in (2, 3, 4) for letters in product("abc", repeat=size)]
    made = set(edits("abc"))
    assert {word for word in words if word[0] == "a" and distance("abc", word) == 1} <= made
    assert {distance("abc", word) for word in made} == {0, 1}

"""text.pairs: one spelling, the full stop, and the sentence that is nearest to the hypothesis."""

import numpy as np
import pytest

from heedful.text.pairs import TEENS, UNITS, in_pairs, nearest_sentences
from heedful.text.parse import Parse, Parser
from heedful.text.structure import check_heads
from heedful.text.trees import build
from tests.text.test_parse import read


def in_pair(text: Parse, limit: int = 99) -> Parse:
    return in_pairs([text], [True], limit, 1)[0]


def test_a_full_stop_is_put_behind_a_last_word_or_number(parser: Parser) -> None:
    for text in ("the kids sleep", "kids, 42", "kids "):
        before = read(parser, text)
        after = in_pair(before, 16)
        assert after.tokens == (*before.tokens, ".")
        assert (after.starts[:-1], after.stops[:-1]) == (list(before.starts), list(before.stops))
        assert after.starts[-1] == after.stops[-1] == len(text)
        assert after.heads[:-1].tolist() == before.heads.tolist()
        root = after.heads[-1]
        assert before.heads[root] == root
        assert in_pair(before, len(before)) is before  # there is no room
    for text in ("the kids sleep.", "(sleep)", "kids!", "...", ""):
        before = read(parser, text)
        assert in_pair(before, 16) is before
    two = build(["No", "she", "left"], np.array([0, 2, 2]), ["ROOT", "nsubj", "ROOT"], [True] * 3)
    assert in_pair(two, 16).heads.tolist() == [0, 2, 2, 2]  # under the last root


SMALL = ["", *UNITS, *TEENS]
TENS = ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
SAME = """
It isn't here. = It is not here.
It isn’t here. = It's not here.
We will not go = We won't go.
They cannot see 2 dogs. = they can't see Two dogs
I am sure you have 90. = I'm sure you've ninety.
Twenty-one of 30 slept, 1 did. = 21 of thirty slept, one did.
Two kids or no one. = two kids or no one.
It costs 1,500 pounds. = It costs fifteen hundred pounds.
The house cost 1.5 million euros. = The house cost 1,500,000 euros.
A dozen eggs at 3.0 each. = Twelve eggs at 3 each.
The 1st of ten percent. = the first of 10%.
The 14th and 20th. = the fourteenth and twentieth.
"""


@pytest.mark.parametrize("pair", SAME.strip().splitlines())
def test_spellings_of_the_same_words_are_read_alike(parser: Parser, pair: str) -> None:
    for tree in (True, False):
        whole, other = (read(parser, text, tree=tree) for text in pair.split(" = "))
        first, second = in_pairs([whole, other], [True] * 2, 99, 2)
        assert list(map(str.lower, first.tokens)) == list(map(str.lower, second.tokens))
        places = set(zip(whole.starts, whole.stops, strict=True))
        assert set(list(zip(first.starts, first.stops, strict=True))[:-1]) <= places
        check_heads(first.heads)


def spelled(number: int) -> str:
    for size, name in ((1000, "thousand"), (100, "hundred")):
        if number >= size:
            rest = spelled(number % size)
            return f"{spelled(number // size)} {name}{f' and {rest}' if rest else ''}"
    return (
        SMALL[number]
        if number < 20
        else f"{TENS[number // 10]}{f'-{SMALL[number % 10]}' if number % 10 else ''}"
    )


def test_spelled_numbers_are_read_as_their_digits(parser: Parser) -> None:
    for number in (*range(2, 130, 3), *range(131, 99_999, 1997)):
        texts = f"we saw {spelled(number)} of them", f"we saw {number} of them"
        words, digits = in_pairs([read(parser, text) for text in texts], [True] * 2, 99, 2)
        assert words.tokens == digits.tokens, texts


@pytest.mark.parametrize("text", ["2.5 kg at 2:30, two and 25.", "The will of Can is thirty-one."])
def test_other_words_and_numbers_are_read_as_typed(parser: Parser, text: str) -> None:
    parse = read(parser, text)
    assert in_pair(parse).tokens == parse.tokens
    assert in_pairs([parse, read(parser, "no one")], [True] * 2, 99, 2)[0].tokens == parse.tokens
    assert in_pairs([parse, read(parser, "9")], [False, True], 99, 2)[0] == parse


PASSAGE = 'Mr. Hall slept (late). Dr. No bought two cars in May! Why? "They were cheap." It rained'
NEAREST = {
    "A man bought cars.": "Dr. No bought two cars in May !",
    "hall SLEPT": "Mr. Hall slept ( late ) .",
    "They weren't cheap.": 'They were cheap . "',
}


@pytest.mark.parametrize("hypothesis", NEAREST)
def test_the_nearest_sentence_shares_most_words(parser: Parser, hypothesis: str) -> None:
    """A single sentence has no other, dogs are nowhere, and Hall and what was bought stand in two sentences."""
    texts = ["It slept.", *[hypothesis, PASSAGE] * 2, "Dogs?", PASSAGE, "Hall bought it"]
    sentences = nearest_sentences([read(parser, text) for text in texts])
    assert list(sentences) == [1]
    assert " ".join(sentences[1].tokens) == NEAREST[hypothesis]
    check_heads(sentences[1].heads)

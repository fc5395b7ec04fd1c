"""text.opposites: one word is replaced by its opposite, or by another number."""

import pytest

from heedful.text.opposites import OPPOSITES, is_opposite
from heedful.text.parse import Parser
from tests.text.test_parse import read

OPPOSITE = """
The shop opens before noon. > The shop opens after noon.
please turn on the heating > Turn OFF the heating!
Two men are pushing a red car. > Two men are pulling a car.
It isn't allowed here. > It isn't forbidden here.
I would go with you. > I'd go without you.
All passed. > None passed.
He died in 1175, aged 60. > He died in 1187.
"""
OTHER = """
The shop opens before noon. > The shop opens before lunch.
It isn't open. > It is closed.
Tom is older than Ann. > Ann is younger than Tom.
We open before noon and after lunch. > We open after noon.
We left before noon. > They left after noon.
He was 20 in 1990. > He was twenty in 1990.
It is on the desk. > It is on the desk.
At least 3 guests left. > At least 2 guests left.
It weighs less than 2 kg. > It weighs less than 30 kg.
"""


@pytest.mark.parametrize(("pairs", "expected"), [(OPPOSITE, True), (OTHER, False)])
def test_opposites_are_told_from_other_pairs(parser: Parser, pairs: str, expected: bool) -> None:
    for pair in pairs.strip().splitlines():
        assert is_opposite(*(read(parser, text) for text in pair.split(" > "))) == expected, pair


def test_the_list_names_no_word_as_its_opposite_and_no_synonyms_as_opposites() -> None:
    """Opposites of a word's opposite are like the word."""
    for word, opposites in OPPOSITES.items():
        assert word not in opposites
        for opposite in opposites:
            assert opposites.isdisjoint(OPPOSITES[opposite]), (word, opposite)

"""text.natural_logic, against set theory: every division of a few individuals among two nouns and two verbs."""

from collections.abc import Callable
from itertools import combinations_with_replacement, product

import pytest

from heedful.text.kinds import NLI_LABELS
from heedful.text.natural_logic import told_by_change, told_label
from heedful.text.parse import Parser
from tests.shipped import BUNDLES
from tests.text.test_parse import read

QUANTIFIERS: dict[str, Callable[[int, int], bool]] = {
    "some": lambda both, only: both >= 1,
    "at least two": lambda both, only: both >= 2,
    "no": lambda both, only: both == 0,
    "none of the": lambda both, only: both == 0,
    "at most two": lambda both, only: both <= 2,
    "fewer than three": lambda both, only: both < 3,
    "all": lambda both, only: only == 0,
    "every one of the": lambda both, only: only == 0,
    "not all": lambda both, only: only > 0,
}
"""Of individuals that are what the noun says: true or not, by the numbers that do what the verb says and do not."""
NOUNS, VERBS = ("guests", "old guests"), ("danced", "danced before noon")
KINDS = tuple(product(range(3), range(3)))
"""An individual is no guest, a guest or an old guest, and does not dance, dances or dances before noon."""
NUMBERS: dict[str, Callable[[float, int], bool]] = {
    "": lambda i, number: i == number,
    "Exactly": lambda i, number: i == number,
    "At least": lambda i, number: i >= number,
    "More than": lambda i, number: i > number,
    "At most": lambda i, number: i <= number,
    "Fewer than": lambda i, number: i < number,
}
"""Of words before a number: whether they admit i."""
WORLDS = [world for size in range(4) for world in combinations_with_replacement(KINDS, size)]
PAIRS = {
    "entailment": """
Ann did not call. > Ann did not call before noon.
Ann never called Bob. > ann NEVER called Bob at work!
Ann left without a word. > Ann left without a kind word.
Nobody called because it was late. > Nobody called.
If it rains, we stay. > If it rains on Monday, we stay.
A few guests left early. > A few guests left.
Ann called Bob. > Ann called Bob or Eve.
She did not sleep and he left early. > She did not sleep and he left.
Nobody who was not invited early came. > Nobody who was not invited came.
At least 3 guests left. > At least two guests left.
It costs less than 950 euros. > It costs less than 1,200 euros.
It costs no more than 9 euros. > It costs less than 10 euros.
He did not pay over 10 euros. > He did not pay over 20 euros.
Ann is older than Bob. > Bob is younger than Ann.
I am older than her brother. > Her brother is younger than me.
My room is bigger than yours. > Your room is smaller than mine.
Carl has a longer beard than Emil. > Emil has a shorter beard than Carl.
Beef is more expensive than fish. > Fish is cheaper than beef.
Beef is more expensive than fish. > Fish is less expensive than beef.
Tom earns more than Ann does. > Ann earns less than Tom.
The lamp is above the desk. > The desk is below the lamp.
Today Ann stood in front of Bob in the queue. > Today Bob stood behind Ann in the queue.
The red kettle is cheaper than the blue one. > The blue kettle is more expensive than the red one.
Ann met Bob. > Bob met Ann.
Eve is married to Bob. > Bob is married to Eve.
""",
    "neutral": """
Few guests left early. > Few guests left.
Ann called Bob or Eve. > Ann called Bob.
It did not rain. > It did not rain or snow.
She plays the piano or the violin. > She plays the violin.
Nobody called. > Nobody called because it was late.
Ann will call, or Bob will stay. > Ann will call.
If it rains on Monday, we stay. > If it rains, we stay.
Ann asked if Bob had left. > Ann asked if Bob had left early.
At least two guests left. > At least three guests left.
No more than 3 guests left. > No more than 2 guests left.
Ann is probably ill. > Ann is ill.
""",
    "contradiction": """
Ann almost won. > Ann won.
Ann is older than Bob. > Bob is older than Ann.
Ann arrived before Bob. > Bob arrived before Ann.
""",
    "untold": """
Ann called. > Ann did not call.
Only guests left. > Only old guests left.
Fine weather. > There is fine weather.
Ann is here. > Ann is here, too.
The professors knew the athlete performed. > The professors knew the athlete.
Ann called Bob. > Bob called Ann early.
The old guest left early. > The guest left.
Ann paid 3 euros. > Ann paid 2 euros.
3 of 4 guests left. > Over 2 of 4 guests left.
Ann paid over 2 euros. > Ann paid over 3 dollars.
Ann is older than Bob. > Bob is taller than Ann.
... > Ann called.
""",
}
TOLD = """
No guest left early. > No guest left. > neutral neutral neutral
The shop opens before noon. > The shop opens after noon. > contradiction neutral contradiction
Alice paid Bob. > Bob paid Alice. > neutral neutral contradiction
Alice paid Bob. > Bob has money. > entailment neutral contradiction
She thinks the bank is closed. > The bank is closed. > neutral neutral contradiction
The coffee is hot. > The coffee is not cold. > entailment entailment entailment
He failed the exam. > He didn't pass the exam. > entailment entailment entailment
It is not impossible to win. > It is possible to win. > entailment entailment entailment
The coffee is not hot. > The coffee is cold. > entailment neutral contradiction
"""
"""Of each pair what is told where a model says entailment, neutral and contradiction."""


@pytest.fixture(scope="module")
def shipped() -> Parser:
    return Parser.load(BUNDLES / "parser")


def _is_true(quantifier: str, noun: int, verb: int, world: tuple[tuple[int, int], ...]) -> bool:
    does = [done > verb for being, done in world if being > noun]
    return QUANTIFIERS[quantifier](sum(does), len(does) - sum(does))


@pytest.mark.parametrize("quantifier", QUANTIFIERS)
def test_what_follows_is_true_wherever_the_premise_is(shipped: Parser, quantifier: str) -> None:
    for noun, verb in product(range(2), range(2)):
        for changed in ((1 - noun, verb), (noun, 1 - verb)):
            sides = ((noun, verb), changed)
            texts = [f"{quantifier} {NOUNS[n]} {VERBS[v]}.".capitalize() for n, v in sides]
            worlds = [world for world in WORLDS if _is_true(quantifier, noun, verb, world)]
            expected = all(_is_true(quantifier, *changed, world) for world in worlds)
            told = told_by_change(*(read(shipped, text) for text in texts))
            assert told == ("entailment" if expected else "neutral"), texts


@pytest.mark.parametrize(("first", "second"), [*product(NUMBERS, repeat=2)])
def test_numbers_and_their_bounds(parser: Parser, first: str, second: str) -> None:
    """Of what may be measured, not counted: over 2 kilograms need not be at least 3."""
    for number, other in product((2, 3, 4), repeat=2):
        texts = f"{first} {number} kilograms remain.", f"{second} {other} kilograms remain."
        if first == second == "" or texts[0] == texts[1]:
            continue
        given, said = (
            {half for half in range(16) if NUMBERS[bound](half / 2, n)}
            for bound, n in ((first, number), (second, other))
        )
        expected = "entailment" if given <= said else "neutral" if given & said else "contradiction"
        assert told_by_change(*(read(parser, text) for text in texts)) == expected, texts


@pytest.mark.parametrize("label", PAIRS)
def test_words_before_the_added_ones_tell_what_follows(shipped: Parser, label: str) -> None:
    for pair in PAIRS[label].strip().splitlines():
        told = told_by_change(*(read(shipped, text) for text in pair.split(" > ")))
        assert (told or "untold") == label, pair


def test_without_a_tree_the_noun_phrase_of_all_is_not_told(shipped: Parser) -> None:
    pair = [read(shipped, f"All {noun} left.", tree=False) for noun in NOUNS]
    assert told_by_change(*pair) is None


@pytest.mark.parametrize("row", TOLD.strip().splitlines())
def test_what_the_words_tell_goes_before_what_a_model_says(shipped: Parser, row: str) -> None:
    *pair, told = row.split(" > ")
    premise, hypothesis = (read(shipped, text) for text in pair)
    assert [told_label(premise, hypothesis, label) for label in NLI_LABELS] == told.split()

"""What the words of a pair tell of its label: words that are added or left out, numbers, comparisons, opposites, roles.

"No guests left." entails "No guests left early.", and "Some guests left early." entails "Some guests left.": a negation
reverses what follows. Sentences of nearly the same words have nearly the same vector, so a model of sentences says
entailment to all four. This is the monotonicity of natural logic (MacCartney and Manning 2007), for words that are
added or left out. docs/notes/nli.md has what it is worth.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from heedful.text.factuality import is_stated
from heedful.text.kinds import NLILabel
from heedful.text.language import FUNCTION_WORDS
from heedful.text.opposites import BOUNDS, NEGATIONS, is_opposite, is_opposite_denied
from heedful.text.pairs import NOT, NUMBER_WORDS, numbers_of, words_of
from heedful.text.parse import Parse
from heedful.text.relations import RELATING, told_by_relation
from heedful.text.roles import are_roles_exchanged

DOWNWARD = (NEGATIONS - {"nor"}) | {"few", "fewer", "hardly", "rarely", "seldom", "if"}
"""Words after which, in their clause, a phrase entails what is narrower; "if" where it begins the clause.
"nor" repeats a "neither", which has counted."""
UNIVERSAL = frozenset(("all", "every", "each"))
"""Determiners whose noun phrase entails what is narrower."""
UNCLEAR = frozenset(("only", "exactly", "most", "whether", "except", "but", "unless"))
"""A text with one of these words gets no answer."""
NOT_QUITE = frozenset(("almost", "nearly"))
"""A text contradicts itself without them."""
HEDGES = frozenset(
    (
        *("allegedly", "apparently", "likely", "maybe", "perhaps", "possibly", "presumably"),
        *("hopefully", "probably", "reportedly", "supposedly", "fake", "former", "future"),
        "potential",
    )
)
"""A text does not entail itself without them."""
AT_MOST = ("at", "most")
CLAUSE_BEGINS = frozenset(
    (
        *("because", "although", "though", "since", "while", "so", "when", "as"),
        *(",", ";", ":", "-", ".", "!", "?"),
    )
)
"""Words and marks that end the clause before them, as "and" does before one of SUBJECTS."""
QUANTITIES = NUMBER_WORDS.union(("a", "and", "-"), *BOUNDS)
"""Words of numbers and of their bounds."""
SUBJECTS = frozenset(("i", "you", "he", "she", "it", "we", "they", "there", "everyone"))


class Quantity(NamedTuple):
    """The only number of a text."""

    others: list[str]
    """The words without it and its bound."""
    place: int
    """Of its bound."""
    bound: tuple[str, ...]
    low: tuple[float, float]
    high: tuple[float, float]
    """The ends of what the text admits: a number, and 0, or 1 or -1 for the numbers above or below it."""


def told_label(premise: Parse, hypothesis: Parse, label: str) -> str:
    """The label that the words tell of a pair to which a model gives `label`; the same where they tell none."""
    told = told_by_change(premise, hypothesis)
    if (told or label) != "entailment":
        return told or label
    if not told and is_opposite(premise, hypothesis):
        return "contradiction"
    is_exchanged = not told and are_roles_exchanged(premise, hypothesis)
    return "neutral" if is_exchanged or not is_stated(premise, hypothesis) else "entailment"


def told_by_change(premise: Parse, hypothesis: Parse) -> NLILabel | None:
    """The label of a pair of which one text is the other with a few words added or exchanged.

    None for other pairs, and where the words do not tell.
    """
    given, said = _words(premise), _words(hypothesis)
    if told := _told_by_numbers(premise, given, said):
        return told
    if not RELATING.isdisjoint(given) and (told := told_by_relation(given, said)):
        return told
    if NOT.isdisjoint(given) != NOT.isdisjoint(said) and is_opposite_denied(given, said):
        return "entailment"
    adds = len(said) > len(given)
    parse, long, short = (hypothesis, said, given) if adds else (premise, given, said)
    run = _added(short, long) if 0 < len(short) < len(long) else None
    if run is None or _is_unclear(parse, long, run):
        return None
    words = long[run]
    if not adds and NOT_QUITE.issuperset(words):
        return "contradiction"
    if not adds and HEDGES.issuperset(words):
        return "neutral"
    is_narrower = adds != _has_or(long, run)
    is_downward = _is_downward(parse, long, run.start)
    says_little = not run.start or FUNCTION_WORDS.issuperset(words_of(words))
    if says_little and is_narrower and not is_downward:
        return None  # "There are" before a noun, for example
    if is_narrower != is_downward:
        return "neutral"
    return "entailment" if adds or _is_dispensable(premise, run) else None


def _words(parse: Parse) -> list[str]:
    """The tokens in lower case, without the marks at the end."""
    words = [token.lower() for token in parse.tokens]
    while words and not words[-1][-1].isalnum():
        words.pop()
    return words


def _added(short: Sequence[str], long: Sequence[str]) -> slice | None:
    """The words of `long` that are one run and the only ones that `short` has not."""
    more = len(long) - len(short)
    start = next((i for i, word in enumerate(short) if word != long[i]), len(short))
    if short[start:] != long[start + more :]:
        return None
    return slice(start, start + more)


def _is_dispensable(parse: Parse, run: slice) -> bool:
    """Whether no other word depends on one of the run, but for what "and" joins to it. True without a tree."""
    return not any(
        run.start <= head < run.stop and not run.start <= word < run.stop
        for word, (head, relation) in enumerate(zip(parse.heads.tolist(), parse.deps, strict=False))
        if relation not in ("conj", "punct")
    )


def _has_or(long: Sequence[str], run: slice) -> bool:
    """Whether "or" begins or ends the run, or one that might as well be added: "the piano or" for "piano or the"."""
    start, stop = run.start, run.stop
    if long[start] == "," and stop > start + 1:
        start += 1
    while "or" not in (long[start], long[stop - 1]):
        if not start or long[start - 1] != long[stop - 1]:
            return False
        start, stop = start - 1, stop - 1
    return True


def _is_unclear(parse: Parse, words: Sequence[str], run: slice) -> bool:
    unclear = UNCLEAR if parse.deps else UNCLEAR | UNIVERSAL
    return not (DOWNWARD | UNIVERSAL).isdisjoint(words[run]) or any(
        word in unclear and (words[place - 1], word) != AT_MOST for place, word in enumerate(words)
    )


def _is_downward(parse: Parse, words: Sequence[str], start: int) -> bool:
    """Whether an odd number of words before the place `start` reverse what follows from its clause."""
    turns = 0
    for place in range(start - 1, -1, -1):
        word, following, previous = words[place], words[place + 1], words[place - 1 : place]
        if following in CLAUSE_BEGINS or (word == "and" and following in SUBJECTS):
            break
        if word in UNIVERSAL:
            turns += _is_in_phrase(parse, place, start)
        elif word == "if":
            turns += CLAUSE_BEGINS.issuperset(previous)
        elif word in DOWNWARD:
            turns += (word, previous) != ("few", ["a"])
        else:
            turns += (*previous, word) == AT_MOST
    return turns % 2 == 1


def _is_in_phrase(parse: Parse, determiner: int, place: int) -> bool:
    """Whether the word at the place is in the noun phrase of the determiner. Never without a tree."""
    heads = parse.heads.tolist()
    noun = determiner
    if parse.deps and parse.deps[determiner].startswith("det"):
        noun = heads[determiner]
    while place != noun and heads[place] != place:
        place = heads[place]
    return place == noun


def _told_by_numbers(premise: Parse, given: list[str], said: list[str]) -> NLILabel | None:
    if not all(
        word in QUANTITIES or word[0].isdigit() for word in {*given}.symmetric_difference(said)
    ):
        return None
    first, second = _quantity(given), _quantity(said)
    if first is None or second is None or first.others != second.others:
        return None
    if first.bound == second.bound == () or first == second:
        return None  # two numbers may count two things
    is_downward = _is_downward(premise, given, first.place)
    inner, outer = (second, first) if is_downward else (first, second)
    if outer.low <= inner.low and inner.high <= outer.high:
        return "entailment"
    is_apart = first.high < second.low or second.high < first.low
    return "contradiction" if is_apart and not is_downward else "neutral"


def _quantity(words: list[str]) -> Quantity | None:
    """None for a text of no number, or of several."""
    numbers = numbers_of(words)
    if len(numbers) != 1:
        return None
    ((place, value),) = numbers
    before = words[: place.start]
    bounds = (tuple(before[max(len(before) - size, 0) :]) for size in (3, 2, 1, 0))
    bound = next(each for each in bounds if each in BOUNDS)
    ends = [(step, 0.0) if math.isinf(step) else (float(value), step) for step in BOUNDS[bound]]
    start = place.start - len(bound)
    return Quantity([*words[:start], *words[place.stop :]], start, bound, *ends)

"""What the words of a pair tell of its label: an opposite, exchanged roles, words that are added or left out, bounds.

"No guests left." entails "No guests left early.", and "Some guests left early." entails "Some guests left.": a negation
turns round what follows. Sentences of nearly the same words have nearly the same vector, so a model of sentences says
entailment to all four. This is the monotonicity of natural logic (MacCartney and Manning 2007), for words that are
added or left out. docs/notes/nli.md has what it is worth.
"""

from collections.abc import Sequence

from heedful.text.language import FUNCTION_WORDS
from heedful.text.opposites import is_opposite
from heedful.text.pairs import NUMBERS, words_of
from heedful.text.parse import Parse
from heedful.text.roles import are_roles_exchanged

DOWNWARD = frozenset(
    (
        *("no", "not", "n't", "never", "nobody", "nothing", "none", "neither", "without"),
        *("few", "fewer", "hardly", "rarely", "seldom", "if"),
    )
)
"""Words after which, in their clause, a phrase entails what is narrower; "if" where it begins the clause."""
UNIVERSAL = frozenset(("all", "every", "each"))
"""Determiners whose noun phrase entails what is narrower."""
UNCLEAR = frozenset(("only", "exactly", "most", "whether", "except", "but", "unless"))
"""A text with one of these words gets no answer."""
AT_LEAST, AT_MOST = ("at", "least"), ("at", "most")
RISING = {
    **dict.fromkeys([AT_MOST, ("less", "than"), ("fewer", "than"), ("under",), ("below",)], True),
    **dict.fromkeys([AT_LEAST, ("more", "than"), ("over",), ("above",)], False),
}
"""Words before a number, and whether they entail themselves with a higher number; else they do with a lower one."""
CLAUSE_BEGINS = frozenset(
    (
        *("because", "although", "though", "since", "while", "so", "when", "as"),
        *(",", ";", ":", "-", ".", "!", "?"),
    )
)
"""Words and marks that end the clause before them, as "and" does before one of SUBJECTS."""
SUBJECTS = frozenset(("i", "you", "he", "she", "it", "we", "they", "there", "everyone"))


def told_label(premise: Parse, hypothesis: Parse, label: str) -> str:
    """The label that the words tell of a pair to which a model gives `label`; the same where they tell none."""
    if (is_entailed := follows(premise, hypothesis)) is not None:
        return "entailment" if is_entailed else "neutral"
    if label != "entailment":
        return label
    if is_opposite(premise, hypothesis):
        return "contradiction"
    return "neutral" if are_roles_exchanged(premise, hypothesis) else label


def follows(premise: Parse, hypothesis: Parse) -> bool | None:
    """Whether the hypothesis follows from the premise. None where one is not the other with a run of words added, nor
    with another number as a bound, and where the words do not tell.
    """
    given, said = _words(premise), _words(hypothesis)
    if len(given) == len(said):
        return _bound_follows(premise, given, said)
    adds = len(said) > len(given)
    parse, long, short = (hypothesis, said, given) if adds else (premise, given, said)
    run = _added(short, long)
    if run is None or _is_unclear(parse, long, run):
        return None
    added = long[run]
    is_narrower = adds != ("or" in (added[0], added[-1]))
    if _is_downward(parse, long, run):
        return is_narrower
    if is_narrower and (not run.start or FUNCTION_WORDS.issuperset(words_of(added))):
        return None  # such words may say nothing more, as in "There are" before a noun
    return not is_narrower


def _bound_follows(premise: Parse, given: list[str], said: list[str]) -> bool | None:
    places = [i for i, words in enumerate(zip(given, said, strict=True)) if words[0] != words[1]]
    if len(places) != 1:
        return None
    (place,) = places
    numbers = [NUMBERS.get(word, word).replace(",", "") for word in (given[place], said[place])]
    for size in (1, 2):
        rising = RISING.get(tuple(given[max(place - size, 0) : place]))
        if rising is not None and all(map(str.isdecimal, numbers)):
            is_higher = int(numbers[1]) > int(numbers[0])
            turned = _is_downward(premise, given, slice(place - size, place))
            return (is_higher == rising) != turned
    return None


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
    if more < 1 or not short or short[start:] != long[start + more :]:
        return None
    return slice(start, start + more)


def _is_unclear(parse: Parse, words: Sequence[str], run: slice) -> bool:
    unclear = UNCLEAR if parse.deps else UNCLEAR | UNIVERSAL
    return not (DOWNWARD | UNIVERSAL).isdisjoint(words[run]) or any(
        word in unclear and (words[place - 1], word) != AT_MOST for place, word in enumerate(words)
    )


def _is_downward(parse: Parse, words: Sequence[str], run: slice) -> bool:
    """Whether an odd number of words before the run turn round what follows from its clause."""
    turns = 0
    for place in range(run.start - 1, -1, -1):
        word, following, previous = words[place], words[place + 1], words[place - 1 : place]
        if following in CLAUSE_BEGINS or (word == "and" and following in SUBJECTS):
            break
        if word in UNIVERSAL:
            turns += _is_in_phrase(parse, place, run.start)
        elif word == "if":
            turns += CLAUSE_BEGINS.issuperset(previous)
        elif word in DOWNWARD:
            turns += (word, previous) != ("few", ["a"])
        else:
            turns += (*previous, word) == AT_MOST
    return turns % 2 == 1


def _is_in_phrase(parse: Parse, determiner: int, place: int) -> bool:
    """Whether the word at the place is in the noun phrase of the determiner, as the tree tells."""
    heads = parse.heads.tolist()
    noun = heads[determiner] if parse.deps[determiner].startswith("det") else determiner
    while place != noun and heads[place] != place:
        place = heads[place]
    return place == noun

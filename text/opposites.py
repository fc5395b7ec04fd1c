"""Whether a hypothesis says the opposite of its premise in the premise's words.

Sentences that differ in a single word have nearly the same vector. docs/notes/nli.md has what comparing the words is
worth.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from heedful.text.parse import Parse

NEGATIONS = frozenset(
    ("not", "n't", "no", "never", "nobody", "none", "nothing", "without", "neither", "nor")
)
ENDINGS = ("s", "es", "ed", "d", "ing")


def _read(pairs: Iterable[str]) -> dict[str, set[str]]:
    opposites: dict[str, set[str]] = defaultdict(set)
    for pair in pairs:
        first, second = pair.split()
        opposites[first].add(second)
        opposites[second].add(first)
    return dict(opposites)


OPPOSITES = _read((Path(__file__).parent / "opposites.txt").read_text().splitlines())
"""Base forms of words, and of each its opposites."""


def is_opposite(premise: Parse, hypothesis: Parse) -> bool:
    """Whether the hypothesis is a part of the premise with one word replaced by its opposite, or by another number.

    The part has the premise's words in their order, perhaps with gaps, and as many negations as the premise.
    """
    given, words = _words(premise), _words(hypothesis)
    others = set(words).difference(given)
    if len(others) != 1:
        return False
    (other,) = others
    opposites = set().union(*[OPPOSITES.get(base, ()) for base in _bases(other)])
    if not opposites and not other.isdigit():
        return False
    for word in set(given).difference(words):
        if (word.isdigit() and other.isdigit()) or not opposites.isdisjoint(_bases(word)):
            part = [word if each == other else each for each in words]
            if _is_part(part, given) and _negations(part) == _negations(given):
                return True
    return False


def _words(parse: Parse) -> list[str]:
    return [token.lower() for token in parse.tokens if token[0].isalnum()]


def _negations(words: Sequence[str]) -> int:
    return sum(word in NEGATIONS for word in words)


def _bases(word: str) -> set[str]:
    """The word, and what it may be a form of."""
    bases = {word}
    for ending in ENDINGS:
        if word.endswith(ending):
            stem = word.removesuffix(ending)
            bases |= {stem, f"{stem}e", stem[:-1]}
    return bases


def _is_part(words: Sequence[str], given: Sequence[str]) -> bool:
    remaining = iter(given)
    return all(word in remaining for word in words)

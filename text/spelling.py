"""Misspelled words, and the listed words that were meant: "recieve" is "receive".

A word that is not listed is composed from its spelling, by which a model knows it only roughly. docs/notes/words.md has
what this is worth.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from string import ascii_lowercase

from heedful.text.plain import CACHED_WORDS

WORD = re.compile("[a-z]{5,12}")
"""Words that are corrected: a name begins with a capital letter, and most short words are one letter from another."""
RARE = 20_000
"""A listed word from this id on is too rare to be what was meant."""
# On import: serving processes, which are forked later, share them.
KNOWN = frozenset((Path(__file__).parent / "words.txt").read_text().split())
"""English words, which a vocabulary may lack and which are no mistake."""


class Corrections(dict[str, str]):
    """What an unlisted word that matches WORD is read as: the most frequent listed word one letter away, or itself.

    It is a cache, which is cleared when it holds CACHED_WORDS.
    """

    def __init__(self, ids: Mapping[str, int]) -> None:
        """`ids` of listed words in the order of their frequency."""
        super().__init__()
        self._ids = ids

    def __missing__(self, word: str) -> str:
        if word in KNOWN:
            return word
        if len(self) >= CACHED_WORDS:
            self.clear()
        listed = filter(self._ids.__contains__, edits(word))
        meant = min(listed, key=self._ids.__getitem__, default=word)
        self[word] = meant if self._ids.get(meant, RARE) < RARE else word
        return self[word]


def edits(word: str) -> Iterator[str]:
    """The words with one letter left out, exchanged with the next, replaced or added (Damerau 1964); not the first."""
    for i in range(1, len(word) + 1):
        start, end = word[:i], word[i:]
        yield start + end[1:]
        yield start + end[1:2] + end[:1] + end[2:]
        for letter in ascii_lowercase:
            yield start + letter + end[1:]
            yield start + letter + end

"""Misspelled words, as a vocabulary lists them: "recieve" is read as "receive".

A word that is not listed is composed from its spelling, by which a model knows it only roughly. docs/notes/words.md has
what this is worth.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from string import ascii_lowercase

from heedful.text.language import is_foreign
from heedful.text.parse import Parse
from heedful.text.plain import CACHED_WORDS
from heedful.text.vocab import Vocab

WORD = re.compile("[a-z]{5,12}")
"""Words that are corrected: a name begins with a capital letter, and most short words are one letter from another."""
FEW_TOKENS = 2
"""A text of so few tokens may hold a misspelled word and no other."""
RARE = 20_000
"""A listed word from this id on is too rare to be what was meant."""
KNOWN = frozenset((Path(__file__).parent / "words.txt").read_text().split())
"""English words, which a vocabulary may lack and which are no mistake."""


class Spelling(dict[str, str]):
    """Corrects texts for a vocabulary, whose words are in the order of their frequency.

    It is a cache of unlisted words and what they are read as: the most frequent listed word one letter away, if any. It
    is cleared when it holds CACHED_WORDS.
    """

    def __init__(self, vocab: Vocab) -> None:
        super().__init__()
        self._vocab = vocab

    def __missing__(self, word: str) -> str:
        if word in KNOWN or not WORD.fullmatch(word):
            return word
        if len(self) >= CACHED_WORDS:
            self.clear()
        listed = min(self._vocab.listed(edits(word)), default=RARE)
        self[word] = self._vocab.words[listed] if listed < RARE else word
        return self[word]

    def corrected(self, texts: Sequence[Parse], typed: Sequence[bool]) -> list[Parse]:
        """The texts, those that are `typed` with listed words in place of misspelled ones, which keep their spans."""
        return [
            self._corrected(text) if is_typed else text
            for text, is_typed in zip(texts, typed, strict=True)
        ]

    def _corrected(self, text: Parse) -> Parse:
        """The text itself where it is hardly English: another language, or more words unlisted than listed."""
        unlisted = [i for i, token in enumerate(text.tokens) if token not in self._vocab]
        count = len(text.tokens)
        if not unlisted or (2 * len(unlisted) > count > FEW_TOKENS) or is_foreign(text.tokens):
            return text
        tokens = list(text.tokens)
        for i in unlisted:
            tokens[i] = self[tokens[i]]
        if tokens == list(text.tokens):
            return text
        return replace(text, tokens=tuple(tokens), spans=(text.starts, text.stops))


def edits(word: str) -> Iterator[str]:
    """The words with one letter left out, exchanged with the next, replaced or added (Damerau 1964); not the first."""
    for i in range(1, len(word) + 1):
        start, end = word[:i], word[i:]
        yield start + end[1:]
        yield start + end[1:2] + end[:1] + end[2:]
        for letter in ascii_lowercase:
            yield start + letter + end[1:]
            yield start + letter + end

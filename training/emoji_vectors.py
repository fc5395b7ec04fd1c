"""Initial vectors of emoji from their names in Unicode: the mean of "broken" and "heart" for a broken heart."""

import unicodedata
from collections import Counter
from collections.abc import Sequence
from itertools import compress

import numpy as np
import numpy.typing as npt

from heedful.text.arrays import Floats
from heedful.text.vocab import Vocab
from heedful.training.vectors import VectorSource

_OMITTED = "and black face heavy medium of sign symbol the white with"
OMITTED = frozenset(_OMITTED.split())
"""Words of names that describe an emoji's form ("heavy black heart" is red), not its meaning."""


class NamedEmoji:
    """The vectors of another source; an emoji has the mean of its name's words that have a vector."""

    def __init__(self, source: VectorSource) -> None:
        self._source = source

    def has(self, words: Sequence[str]) -> npt.NDArray[np.bool_]:
        known = self._source.has(words)
        for i, names in self._named(words):
            known[i] = known[i] or bool(names)
        return known

    def look_up(self, words: Sequence[str]) -> Floats:
        vectors = self._source.look_up(words)
        known = self._source.has(words)
        for i, names in self._named(words):
            if names and not known[i]:
                vectors[i] = self._source.look_up(names).mean(axis=0)
        return vectors

    def _named(self, words: Sequence[str]) -> list[tuple[int, list[str]]]:
        """The place of each emoji, and the words of its name that have a vector."""
        names = [(i, name_words(word)) for i, word in enumerate(words) if not word.isascii()]
        return [
            (i, [word for word, known in zip(parts, self._source.has(parts), strict=True) if known])
            for i, parts in names
            if parts
        ]


def new_emoji(lexicon: Vocab, counts: Counter[str], source: VectorSource, least: int) -> list[str]:
    """Emoji that occur `least` times, that the vocabulary does not list and whose name has a vector."""
    frequent = [word for word, count in sorted(counts.items()) if count >= least]
    unlisted = [word for word in frequent if word not in lexicon and name_words(word)]
    return list(compress(unlisted, NamedEmoji(source).has(unlisted)))


def name_words(token: str) -> list[str]:
    """The words of an emoji's name that say what it means; none for another token."""
    if len(token) != 1 or unicodedata.category(token) != "So":
        return []
    name = unicodedata.name(token, "").lower().replace("-", " ")
    return [word for word in name.split() if word not in OMITTED]

"""Word <-> id. The file has a word per line; the line number is the id."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from heedful.text import composition
from heedful.text.arrays import Ints
from heedful.text.batch import Sentence
from heedful.text.language import is_foreign
from heedful.text.parse import Parse
from heedful.text.plain import CACHED_WORDS, MAX_CACHED_LENGTH, STRETCHED, plain_word
from heedful.text.spelling import WORD, Corrections

FEW_TOKENS = 2
"""A text of so few tokens may hold a misspelled word and no other."""
UNKNOWN = 1
SPECIAL = ("<pad>", "<unk>")


class Vocab:
    """Lower-cased words and their ids; 0 is padding. A token is looked up in its plain spelling first (text.plain).

    All unlisted words have the id 1. With `composed` rows, words are instead composed from their spelling
    (text.composition): the k-th unlisted word of a sentence has the id -k.
    """

    limit: int | None = None
    """No limit on the length of a sentence; `text.pieces` has one."""

    def __init__(self, words: Iterable[str], composed: int = 0) -> None:
        """`words` are those after the two SPECIAL. Raises ValueError for a word that is repeated, empty or has a blank.

        `composed` is the number of rows of the table of features by which unlisted words are composed; 0 without one.
        """
        self.composed = composed
        self.words: tuple[str, ...] = (*SPECIAL, *words)
        self._ids = {word: i for i, word in enumerate(self.words)}
        self._cache = _IdCache(self._ids)
        self._corrections = Corrections(self._ids)
        if len(self._ids) != len(self.words):
            raise ValueError("the vocabulary holds a word twice")
        for word in self.words:
            if not word or word.split() != [word]:
                raise ValueError(f"not a word: {word!r}")

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, token: str) -> bool:
        return self._cache[token] > UNKNOWN

    def corrected(self, texts: Sequence[Parse], typed: Sequence[bool]) -> list[Parse]:
        """The texts, those that are `typed` with listed words in place of misspelled ones, which keep their spans.

        A text that is hardly English stays: of another language, or with more words unlisted than listed.
        """
        corrected = list(texts)
        for row, text in enumerate(texts):
            if not typed[row]:
                continue
            tokens = list(text.tokens)
            ids = map(self._cache.__getitem__, tokens)
            unlisted = [i for i, number in enumerate(ids) if number == UNKNOWN]
            words = [i for i in unlisted if WORD.fullmatch(tokens[i])]
            is_strange = 2 * len(unlisted) > len(tokens) > FEW_TOKENS
            if not words or is_strange or is_foreign(tokens):
                continue
            for i in words:
                tokens[i] = self._corrections[tokens[i]]
            corrected[row] = replace(text, tokens=tuple(tokens), spans=(text.starts, text.stops))
        return corrected

    def ids(self, tokens: Sequence[str]) -> Ints:
        """(L,) ids, `UNKNOWN` for a word that is not in the vocabulary. A literal "<pad>" is unknown too."""
        return np.array(list(map(self._cache.__getitem__, tokens)), np.int64)

    def sentence(self, tokens: Sequence[str], heads: Ints) -> Sentence:
        ids = list(map(self._cache.__getitem__, tokens))
        if not self.composed or UNKNOWN not in ids:
            return Sentence(np.array(ids, np.int64), heads)
        unlisted = [i for i, word in enumerate(ids) if word == UNKNOWN]
        for number, i in enumerate(unlisted):
            ids[i] = -1 - number
        features = composition.matrix([plain_word(tokens[i]) for i in unlisted], self.composed)
        return Sentence(np.array(ids, np.int64), heads, features=features)

    def fitting(self, tokens: Sequence[str]) -> int:
        """The number of leading words that fit: all of them."""
        return len(tokens)

    def word_ids(self, sentence: Sentence) -> Ints:
        """(L,) the ids, `UNKNOWN` for unlisted words."""
        ids: Ints = np.where(sentence.ids < 0, UNKNOWN, sentence.ids)
        return ids

    def known(self, sentence: Sentence) -> npt.NDArray[np.bool_]:
        """(L,) whether each word is in the vocabulary."""
        known: npt.NDArray[np.bool_] = sentence.ids > UNKNOWN
        return known

    def unlisted(self, sentence: Sentence) -> int:
        """The number of words that are not `known`."""
        if self.composed:
            return 0 if sentence.features is None else len(sentence.features)
        ids: list[int] = sentence.ids.tolist()
        return ids.count(UNKNOWN)

    @classmethod
    def read(cls, content: bytes, composed: int = 0) -> Self:
        """The vocabulary in the bytes of a file that `save` wrote. Raises ValueError."""
        lines = content.decode().split("\n")
        if tuple(lines[:2]) != SPECIAL or lines[-1] != "":
            raise ValueError(f"is not a vocabulary: it must begin with {SPECIAL}, a word per line")
        return cls(lines[2:-1], composed)

    def save(self, path: Path) -> None:
        path.write_text("\n".join(self.words) + "\n", encoding="utf-8", newline="\n")


class _IdCache(dict[str, int]):
    """A cache of tokens' ids, without long tokens; it is cleared when it holds CACHED_WORDS.

    It does not refer to its Vocab: runtime.memory freezes the objects of the start, so that a reference cycle would
    outlive a reload.
    """

    def __init__(self, ids: Mapping[str, int]) -> None:
        super().__init__()
        self._ids = ids

    def __missing__(self, token: str) -> int:
        """The id of the token's plain spelling, of the token itself, or with stretched letters as two or one."""
        word = plain_word(token).lower()
        spellings = [word, token.lower()]
        if STRETCHED.search(word):
            spellings += [STRETCHED.sub(r"\1\1", word), STRETCHED.sub(r"\1", word)]
        ids = filter(None, map(self._ids.get, spellings))  # without PAD, which is 0
        number = next(ids, UNKNOWN)
        if len(token) <= MAX_CACHED_LENGTH:
            if len(self) >= CACHED_WORDS:
                self.clear()
            self[token] = number
        return number

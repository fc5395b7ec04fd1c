"""The tokens of a text as numbers: where they stand, and what the arc parser reads of them."""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import add
from typing import Any, NamedTuple, Self

import heedful.text.spacy_import  # noqa: F401  # before spaCy  # isort: skip

import numpy as np
from spacy.attrs import IDX, LENGTH, NORM, ORTH, PREFIX, SHAPE, SUFFIX
from spacy.strings import get_string_id
from spacy.tokens import Doc

from heedful.text.arrays import Hashes

ATTRIBUTES = (NORM, PREFIX, SUFFIX, SHAPE)
"""What the vector of a token is made of. The norm comes first."""
_COLUMNS = [IDX, LENGTH, ORTH, *ATTRIBUTES]
_MIX, _64_BITS = 0x9E3779B97F4A7C15, 2**64 - 1
_ALONE = (0,)  # most runs have one token


Spans = tuple[Sequence[int], Sequence[int]]
"""Where tokens start and where they stop, in characters."""


class Run(NamedTuple):
    """Characters between white space, and the n tokens that they are split into."""

    text: str
    forms: tuple[str, ...]
    starts: tuple[int, ...]  # in the run
    keys: tuple[int, ...]  # of form and norm: "ca" of "can't" is not the "ca" alone
    hashes: bytes  # of the ATTRIBUTES: (n, 4) uint64

    @classmethod
    def of(cls, doc: Doc) -> Self:
        """A document as one run."""
        found = doc.to_array(_COLUMNS)  # (n, 7) uint64
        text, rows = doc.text, found.tolist()
        starts = tuple([row[0] for row in rows])
        return cls(
            text,
            tuple([text[row[0] : row[0] + row[1]] for row in rows]),
            _ALONE if starts == _ALONE else starts,
            tuple([_key(row[2], row[3]) for row in rows]),
            found[:, 3:].tobytes(),
        )

    @classmethod
    def of_word(cls, word: str, vocab: Any) -> Self:
        """A word that is one token to spaCy, with its vocabulary. A document of it would take three times as long."""
        if word in vocab:
            lexeme = vocab[word]
            hashes = [lexeme.norm, lexeme.prefix, lexeme.suffix, lexeme.shape]
        else:  # it need not be kept there
            attribute = vocab.lex_attr_getters
            hashes = [get_string_id(attribute[name](word)) for name in ATTRIBUTES]
        key = _key(get_string_id(word), hashes[0])
        return cls(word, (word,), _ALONE, (key,), struct.pack("=4Q", *hashes))

    def then(self, other: Self) -> Self:
        """The two without white space between them."""
        starts = (*self.starts, *[len(self.text) + start for start in other.starts])
        return type(self)(
            self.text + other.text,
            self.forms + other.forms,
            starts,
            self.keys + other.keys,
            self.hashes + other.hashes,
        )


def _key(form: int, norm: int) -> int:
    """Of a token, from the hashes of its form and its norm."""
    return (form ^ norm * _MIX) & _64_BITS


@dataclass(slots=True)
class Tokens:
    """The first L tokens of a text."""

    runs: Sequence[Run]  # that they come from; the last one may hold more
    forms: tuple[str, ...]  # as the text has them
    cut: bool = False  # whether later tokens were left out
    spans: Spans | None = None  # None where each adjoins the one before, or a blank stands between

    @classmethod
    def of(cls, runs: Sequence[Run], limit: int | None = None) -> Self:
        """The first `limit` tokens of the runs."""
        forms = tuple(chain.from_iterable([run.forms for run in runs]))
        if limit is None or len(forms) <= limit:
            return cls(runs, forms)
        return cls(runs, forms[:limit], cut=True)

    @property
    def keys(self) -> list[int]:
        """Of each token."""
        return list(chain.from_iterable([run.keys for run in self.runs]))[: len(self)]

    def __len__(self) -> int:
        return len(self.forms)


def spans(starts: Iterable[int], forms: Sequence[str]) -> Spans:
    """The spans of tokens of these forms that start there."""
    begun = tuple(starts)
    return begun, tuple(map(add, begun, map(len, forms)))


def adjoining(text: str, forms: Sequence[str]) -> Spans:
    """The spans of tokens that adjoin each other in a text, or have a blank between them."""
    starts, at = [], 0
    for form in forms:
        at += text.startswith(" ", at)
        starts.append(at)
        at += len(form)
    return spans(starts, forms)


def hashes(texts: Sequence[Tokens]) -> Hashes:
    """The ATTRIBUTES of the tokens of all texts, one text after the other: (N, 4)."""
    width = np.dtype(np.uint64).itemsize * len(ATTRIBUTES)
    each = (b"".join(run.hashes for run in one.runs)[: width * len(one)] for one in texts)
    return np.frombuffer(b"".join(each), np.uint64).reshape(-1, len(ATTRIBUTES))

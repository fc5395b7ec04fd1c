"""Text -> tokens, by spaCy's tokenizer: any Unicode, of any length. A token is also what the arc parser reads of it."""

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import chain, islice
from operator import add
from typing import Any, NamedTuple, Self

from spacy.attrs import IDX, LENGTH, NORM, ORTH, PREFIX, SHAPE, SUFFIX
from spacy.tokens import Doc
from spacy.vocab import Vocab

from heedful.text.forks import LockOwner
from heedful.text.plain import LONGEST_KEPT, Places, plain

ATTRIBUTES = (NORM, PREFIX, SUFFIX, SHAPE)
"""What the vector of a token is made of. The norm comes first."""
MAX_CHUNK = 500
"""Longest chunk that is read whole: spaCy's tokenizer is quadratic in its length."""
KEPT_WORDS = 10_000
"""Words that the vocabulary keeps for good, about 4 MB. spaCy takes ten times as long for an unknown word."""
KEPT_CHUNKS = 16_384
"""Chunks in each of two generations, in 7 MB, at worst 30: a full one takes the place of the older one, whose chunks
are forgotten unless they were met again. spaCy takes 60 µs for a chunk."""
_CHUNK = re.compile(r"\S+")
_COLUMNS = [IDX, LENGTH, ORTH, *ATTRIBUTES]
_MIX, _64_BITS = 0x9E3779B97F4A7C15, 2**64 - 1
_FIRST = (0,)  # most chunks have one token

Spans = tuple[Sequence[int], Sequence[int]]
"""Where tokens start and where they stop, in characters."""


class Chunk(NamedTuple):
    """Characters between white space, and the n tokens that they are split into."""

    text: str
    forms: tuple[str, ...]
    starts: tuple[int, ...]  # in the chunk
    keys: tuple[int, ...]  # of form and norm: "ca" of "can't" is not the word "ca"
    hashes: bytes  # of the ATTRIBUTES: (n, 4) uint64

    @classmethod
    def of(cls, doc: Doc) -> Self:
        """A document as one chunk."""
        columns = doc.to_array(_COLUMNS)  # (n, 7) uint64
        text, rows = doc.text, columns.tolist()
        starts = tuple([row[0] for row in rows])
        return cls(
            text,
            tuple([text[row[0] : row[0] + row[1]] for row in rows]),
            _FIRST if starts == _FIRST else starts,
            tuple([(row[2] ^ row[3] * _MIX) & _64_BITS for row in rows]),
            columns[:, 3:].tobytes(),
        )


@dataclass(slots=True)
class Tokens:
    """The first L tokens of a text."""

    chunks: Sequence[Chunk]  # that they come from; the last one may hold more
    forms: tuple[str, ...]  # as the text has them
    cut: bool = False  # whether later tokens were left out
    spans: Spans | None = None  # None where a token adjoins the one before, or a blank is between

    @classmethod
    def of(cls, chunks: Sequence[Chunk], limit: int | None = None) -> Self:
        """The first `limit` tokens of the chunks."""
        forms = tuple(chain.from_iterable([chunk.forms for chunk in chunks]))
        if limit is None or len(forms) <= limit:
            return cls(chunks, forms)
        return cls(chunks, forms[:limit], cut=True)

    def __len__(self) -> int:
        return len(self.forms)


class TextTokenizer(LockOwner):
    """Splits a text into chunks at white space, then each chunk into tokens, whatever the other chunks are."""

    def __init__(
        self,
        tokenize: Callable[[str], Doc],
        vocab: Vocab,
        zone: Callable[[], AbstractContextManager[Any]],
    ) -> None:
        super().__init__()
        self._tokenize = tokenize
        self._vocab = vocab
        self._zone = zone
        self._max_words = len(vocab) + KEPT_WORDS
        self._recent: dict[str, Chunk] = {}
        self._older: dict[str, Chunk] = {}

    def zone(self) -> AbstractContextManager[Any]:
        """Documents may be used inside it, which bounds their memory. After KEPT_WORDS words nothing more is kept.

        By then a language's frequent words are known; other words are forgotten at the end of each zone.
        """
        return self._zone() if len(self._vocab) >= self._max_words else nullcontext()

    def tokenize(self, text: str, max_tokens: int) -> Tokens:
        """The first `max_tokens` tokens of the text.

        A chunk holds at least one token, so only the first `max_tokens` + 1 chunks are read. Typographic marks are
        read as plain ones, which stand in the same places, HTML entities as their characters.
        """
        read, places = plain(text)
        with self._lock:
            tokens = self._read(read, max_tokens)
        if read != text:
            _restore(tokens, read, places, text)
        return tokens

    def _read(self, text: str, max_tokens: int) -> Tokens:
        recent = self._recent.get
        texts = text.split()
        if len(text) <= MAX_CHUNK and " ".join(texts) == text:
            chunks = [recent(spelling) or self._chunk(spelling) for spelling in texts]
            return Tokens.of(chunks, max_tokens)
        chunks, starts, cut = [], [], False
        for match in islice(_CHUNK.finditer(text), max_tokens + 1):
            chunk = self._chunk(match[0][:MAX_CHUNK])
            chunks.append(chunk)
            starts += [match.start() + start for start in chunk.starts]
            cut = len(match[0]) > MAX_CHUNK
            if cut or len(starts) > max_tokens:
                break
        tokens = Tokens.of(chunks, max_tokens)
        tokens.cut |= cut
        tokens.spans = _spans(starts[:max_tokens], tokens.forms)
        return tokens

    def _chunk(self, text: str) -> Chunk:
        chunk = self._recent.get(text)
        if chunk:
            return chunk
        chunk = self._older.get(text)
        if not chunk:
            with self.zone():
                chunk = Chunk.of(self._tokenize(text))
        if len(text) <= LONGEST_KEPT:
            if len(self._recent) >= KEPT_CHUNKS:
                self._older, self._recent = self._recent, {}
            self._recent[text] = chunk
        return chunk


def _restore(tokens: Tokens, read: str, places: Places, text: str) -> None:
    """Give the tokens that were read their forms and spans in the text as it was typed."""
    starts, stops = tokens.spans or adjoining(read, tokens.forms)
    tokens.spans = starts, stops = places.starts(starts), places.stops(stops)
    tokens.forms = tuple([text[start:stop] for start, stop in zip(starts, stops, strict=True)])


def _spans(starts: Iterable[int], forms: Sequence[str]) -> Spans:
    """The spans of tokens of these forms that start there."""
    offsets = tuple(starts)
    return offsets, tuple(map(add, offsets, map(len, forms)))


def adjoining(text: str, forms: Sequence[str]) -> Spans:
    """The spans of tokens that adjoin each other in a text, or have a blank between them."""
    starts, at = [], 0
    for form in forms:
        at += text.startswith(" ", at)
        starts.append(at)
        at += len(form)
    return _spans(starts, forms)

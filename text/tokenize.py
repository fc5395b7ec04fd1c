"""Text -> tokens: the tokenizer of a spaCy pipeline. It gives a Doc when it is called, arrays to the service.

It reads a text as `text.plain` spells it, by the rules of a spaCy tokenizer, and remembers the chunks that it met.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import chain, islice
from operator import add
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from spacy.attrs import IDX, LENGTH, NORM, PREFIX, SHAPE, SUFFIX
from spacy.language import Language
from spacy.tokenizer import Tokenizer
from spacy.tokens import Doc
from spacy.util import registry

from heedful.text import english
from heedful.text.arrays import Hashes
from heedful.text.forks import LockOwner
from heedful.text.plain import LONGEST_KEPT, Places, plain

NAME = "heedful.Tokenizer.v1"
"""In the configuration of a pipeline, under `[nlp.tokenizer]`."""
ATTRIBUTES = (NORM, PREFIX, SUFFIX, SHAPE)
"""What the vector of a token is made of. The norm comes first."""
WORD_BYTES = 8 * len(ATTRIBUTES)
WORDS_READ = "heedful.words"
"""Under this key a Doc holds the ATTRIBUTES of its words, as they were read: "n't" where the text has "n’t"."""
GAP = "SPACE"
"""Part of speech of what is no word, as spaCy has it for white space: mark-up and invisible characters too."""
MAX_CHUNK = 500
"""Longest chunk that is read whole: spaCy's tokenizer is quadratic in its length."""
KEPT_WORDS = 10_000
"""Words that the vocabulary keeps for good, about 4 MB. spaCy takes ten times as long for an unknown word."""
KEPT_CHUNKS = 16_384
"""Chunks in each of two generations, in 7 MB, at worst 30: a full one takes the place of the older one, whose chunks
are forgotten unless they were met again. spaCy takes 60 µs for a chunk."""
_CHUNK = re.compile(r"\S+")
_FIRST = (0,)  # most chunks have one token
_BREAK = "\n"
"""Between chunks that are split together: a token of its own, so that no rule sees two of them side by side."""
_LETTERS = re.compile(r"[A-Za-z]+\Z")
"""No rule for English splits these but those for one word each, which spaCy looks up before."""

Spans = tuple[Sequence[int], Sequence[int]]
"""Where tokens start and where they stop, in characters."""


class Chunk(NamedTuple):
    """Characters between white space, and the n tokens that they are split into."""

    forms: tuple[str, ...]
    starts: tuple[int, ...]  # in the chunk
    words: tuple[bytes, ...]  # the ATTRIBUTES of each: four uint64

    @classmethod
    def each(cls, doc: Doc) -> list[Self]:
        """The chunks of a document in which a _BREAK stands between two of them."""
        columns = doc.to_array([IDX, LENGTH, *ATTRIBUTES])  # (n, 6) uint64
        text, words = doc.text, split_words(columns[:, 2:].tobytes())
        spans = [(start, start + length) for start, length in columns[:, :2].tolist()]
        ends = [i for i, (start, _) in enumerate(spans) if text[start] == _BREAK]
        chunks = []
        for first, end in zip([0, *[end + 1 for end in ends]], [*ends, len(spans)], strict=True):
            begin = spans[first][0]
            starts = tuple([start - begin for start, _ in spans[first:end]])
            forms = tuple([text[start:stop] for start, stop in spans[first:end]])
            starts = _FIRST if starts == _FIRST else starts
            chunks.append(cls(forms, starts, words[first:end]))
        return chunks


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

    @property
    def words(self) -> list[bytes]:
        """The ATTRIBUTES of each token, as it was read."""
        words = list(chain.from_iterable([chunk.words for chunk in self.chunks]))
        return words[: len(self.forms)]


class TextTokenizer(LockOwner):
    """Splits a text into chunks at white space, then each chunk into tokens, whatever the other chunks are."""

    def __init__(self, rules: Callable[[str], Doc], vocab: Any) -> None:
        """`rules` split a chunk: spaCy's tokenizer, or another one. spaCy's `vocab` is typed in part."""
        super().__init__()
        self.rules, self.vocab = rules, vocab
        self._forget()

    def _forget(self) -> None:
        if isinstance(self.rules, Tokenizer) and self.vocab.lang == "en":
            self.rules.token_match = self.rules.token_match or _LETTERS.match  # else 10 µs a chunk
        self._max_words = len(self.vocab) + KEPT_WORDS
        self._recent: dict[str, Chunk] = {}
        self._older: dict[str, Chunk] = {}

    def __call__(self, text: str) -> Doc:
        """The text, character for character. What `tokenize` passes over is a token of the part of speech GAP."""
        tokens = self.tokenize(text, len(text))
        pieces: list[str] = []
        spaces: list[bool] = []
        words: list[int] = []
        end = 0
        for start, stop in [*zip(*spans_of(text, tokens), strict=True), (len(text), len(text))]:
            gap = text[end:start]
            if words and gap.startswith(" "):
                spaces[-1], gap = True, gap[1:]
            if gap:
                pieces.append(gap)
                spaces.append(False)
            if start < stop:
                words.append(len(pieces))
                pieces.append(text[start:stop])
                spaces.append(False)
            end = stop
        kinds = [GAP] * len(pieces)
        for place in words:
            kinds[place] = ""
        doc = Doc(self.vocab, pieces, spaces, pos=kinds)
        if words:
            attributes = b"".join(tokens.words)
            doc.user_data[WORDS_READ] = attributes
            norms = np.zeros((len(pieces), 1), np.uint64)
            norms[words] = np.frombuffer(attributes, np.uint64).reshape(-1, len(ATTRIBUTES))[:, :1]
            known = [norm in self.vocab.strings for norm in norms[:, 0].tolist()]
            columns: Any = norms * np.array(known)[:, None]  # spaCy types them as its own integers
            doc.from_array([NORM], columns)
        return doc

    def __reduce__(self) -> tuple[Any, ...]:
        return TextTokenizer, (self.rules, self.vocab)

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """The rules, as spaCy's tokenizer stores them."""
        rules: Any = self.rules
        content: bytes = rules.to_bytes(exclude=exclude)
        return content

    def from_bytes(self, content: bytes, *, exclude: Iterable[str] = ()) -> Self:
        """Take the rules from bytes. Raises what spaCy's tokenizer raises for others."""
        rules: Any = self.rules
        rules.from_bytes(content, exclude=exclude)
        self._forget()
        return self

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        Path(path).write_bytes(self.to_bytes(exclude=exclude))

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> Self:
        return self.from_bytes(Path(path).read_bytes(), exclude=exclude)

    def zone(self) -> AbstractContextManager[Any]:
        """Documents may be used inside it, which bounds their memory. After KEPT_WORDS words nothing more is kept.

        By then a language's frequent words are known; other words are forgotten at the end of each zone.
        """
        full = len(self.vocab) >= self._max_words and not self.vocab.in_memory_zone
        zone: AbstractContextManager[Any] = self.vocab.memory_zone() if full else nullcontext()
        return zone

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

    def tokenize_all(self, texts: Sequence[tuple[str, int]]) -> list[Tokens]:
        """`tokenize` of texts, each with its `max_tokens`. What is new is split together, in half of the time."""
        if len(texts) > 1 and isinstance(self.rules, Tokenizer):
            with self._lock:
                self._meet(
                    [text.split(None, most)[:most] for text, most in texts if text.isascii()]
                )
        return [self.tokenize(text, max_tokens) for text, max_tokens in texts]

    def _meet(self, texts: Iterable[Sequence[str]]) -> None:
        """Split the chunks of texts that no text had before, by one call of the rules."""
        recent = self._recent
        new = [
            chunk
            for chunk in set(chain.from_iterable(texts))
            if chunk not in recent and chunk not in self._older and len(chunk) <= LONGEST_KEPT
        ]
        if len(new) > 1:
            with self.zone():
                chunks = Chunk.each(self.rules(_BREAK.join(new)))
            for text, chunk in zip(new, chunks, strict=True):
                self._keep(text, chunk)

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
                [chunk] = Chunk.each(self.rules(text))
        if len(text) <= LONGEST_KEPT:
            self._keep(text, chunk)
        return chunk

    def _keep(self, text: str, chunk: Chunk) -> None:
        if len(self._recent) >= KEPT_CHUNKS:
            self._older, self._recent = self._recent, {}
        self._recent[text] = chunk


def make_tokenizer() -> Callable[[Language], TextTokenizer]:
    """The tokenizer of a new pipeline: spaCy's rules for its language, and `text.english` for English."""

    def create(nlp: Language) -> TextTokenizer:
        return TextTokenizer(english.rules(nlp), nlp.vocab)

    return create


registry.tokenizers.register(NAME, func=make_tokenizer)


def split_words(content: bytes) -> tuple[bytes, ...]:
    """ATTRIBUTES of n words -> those of each."""
    return tuple([content[i : i + WORD_BYTES] for i in range(0, len(content), WORD_BYTES)])


def hashes(words: Sequence[bytes]) -> Hashes:
    """The ATTRIBUTES of n words: (n, 4)."""
    return np.frombuffer(b"".join(words), np.uint64).reshape(-1, len(ATTRIBUTES))


def _restore(tokens: Tokens, read: str, places: Places, text: str) -> None:
    """Give the tokens that were read their forms and spans in the text as it was typed."""
    starts, stops = spans_of(read, tokens)
    tokens.spans = starts, stops = places.starts(starts), places.stops(stops)
    tokens.forms = tuple([text[start:stop] for start, stop in zip(starts, stops, strict=True)])


def _spans(starts: Iterable[int], forms: Sequence[str]) -> Spans:
    """The spans of tokens of these forms that start there."""
    offsets = tuple(starts)
    return offsets, tuple(map(add, offsets, map(len, forms)))


def spans_of(text: str, tokens: Tokens) -> Spans:
    return tokens.spans or adjoining(text, tokens.forms)


def adjoining(text: str, forms: Sequence[str]) -> Spans:
    """The spans of tokens that adjoin each other in a text, or have a blank between them."""
    starts, at = [], 0
    for form in forms:
        at += text.startswith(" ", at)
        starts.append(at)
        at += len(form)
    return _spans(starts, forms)

"""Text -> tokens: the tokenizer of a spaCy pipeline. A call returns a Doc, `tokenize` arrays for the service.

It splits the text of `text.plain` by the rules of a spaCy tokenizer, and caches chunks.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import accumulate, chain, islice
from operator import add
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from spacy.attrs import NORM, PREFIX, SHAPE, SUFFIX
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import registry

from heedful.text import english
from heedful.text.arrays import Hashes
from heedful.text.forks import ForkSafe
from heedful.text.plain import MAX_CACHED_LENGTH, plain

NAME = "heedful.Tokenizer.v1"
"""Its name in the configuration of a pipeline, under `[nlp.tokenizer]`."""
ATTRIBUTES = (NORM, PREFIX, SUFFIX, SHAPE)
"""Attributes from which the vector of a token is computed. The norm comes first."""
WORD_BYTES = 8 * len(ATTRIBUTES)
WORDS_READ = "heedful.words"
"""Key of a Doc's `user_data` for the ATTRIBUTES of its normalised words: of "n't" where the text has "n’t"."""
GAP = "SPACE"
"""Part of speech of tokens that are no words: white space, as in spaCy, mark-up and invisible characters."""
MAX_CHUNK = 500
"""Length of the longest chunk that is read: spaCy's tokenizer takes time quadratic in the length."""
KEPT_WORDS = 10_000
"""Words that the vocabulary keeps for good, about 4 MB. spaCy takes ten times as long for an unknown word."""
CACHED_CHUNKS = 16_384
"""Chunks in each of two generations, in 7 MB, at worst 30. When the recent one is full, it replaces the older one,
whose chunks are dropped unless they occurred again. spaCy takes 60 µs for a chunk."""
_CHUNK = re.compile(r"\S+")
_LETTERS = re.compile(r"[A-Za-z]+\Z")
"""Only special cases split these in English. spaCy would search each for affixes, and create a Doc."""

Spans = tuple[Sequence[int], Sequence[int]]
"""The starts and stops of tokens, in characters."""


class Chunk(NamedTuple):
    """The n tokens of a run of characters between white space. They adjoin."""

    forms: tuple[str, ...]
    words: tuple[bytes, ...]  # the ATTRIBUTES of each: four uint64

    @classmethod
    def of(cls, doc: Doc) -> Self:
        """A document as one chunk."""
        forms = tuple([token.text for token in doc])
        return cls(forms, split_words(doc.to_array(list(ATTRIBUTES)).tobytes()))


@dataclass(slots=True)
class Tokens:
    """The first L tokens of a text."""

    chunks: Sequence[Chunk]  # the last chunk may hold more tokens
    forms: tuple[str, ...]  # as in the text
    cut: bool = False  # whether later tokens were left out
    spans: Spans | None = None  # None where tokens adjoin, or are separated by a blank

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
        """The ATTRIBUTES of each token, normalised."""
        words = list(chain.from_iterable([chunk.words for chunk in self.chunks]))
        return words[: len(self.forms)]


class TextTokenizer(ForkSafe):
    """Splits a text into chunks at white space, then each chunk, independently, into tokens."""

    def __init__(self, rules: Any, vocab: Any, words: re.Pattern[str] | None = None) -> None:
        """`rules` split a chunk: spaCy's tokenizer, or another one. spaCy's types of both are incomplete.

        Chunks that `words` matches are one token, unless they are special cases of spaCy's tokenizer.
        """
        super().__init__()
        self.rules, self.vocab, self._words = rules, vocab, words
        self._clear_cache()

    def _clear_cache(self) -> None:
        self._max_words = len(self.vocab) + KEPT_WORDS
        self._recent: dict[str, Chunk] = {}
        self._older: dict[str, Chunk] = {}

    def __call__(self, text: str) -> Doc:
        """A document of the same text. Characters that `tokenize` leaves out are tokens of the part of speech GAP."""
        tokens = self.tokenize(text, len(text))
        pieces: list[str] = []
        spaces: list[bool] = []
        kinds: list[str] = []
        end = 0
        for start, stop in [*zip(*spans_of(text, tokens), strict=True), (len(text), len(text))]:
            gap = text[end:start]
            if pieces and gap.startswith(" "):
                spaces[-1], gap = True, gap[1:]
            if gap:
                pieces.append(gap)
                spaces.append(False)
                kinds.append(GAP)
            if start < stop:
                pieces.append(text[start:stop])
                spaces.append(False)
                kinds.append("")
            end = stop
        doc = Doc(self.vocab, pieces, spaces, pos=kinds)
        if tokens.forms:
            doc.user_data[WORDS_READ] = b"".join(tokens.words)
            norms = np.zeros((len(pieces), 1), np.uint64)
            norms[[not kind for kind in kinds]] = hashes(tokens.words)[:, :1]
            known = [norm in self.vocab.strings for norm in norms[:, 0].tolist()]
            columns: Any = norms * np.array(known)[:, None]  # spaCy types them as its own integers
            doc.from_array([NORM], columns)
        return doc

    def __reduce__(self) -> tuple[Any, ...]:
        return TextTokenizer, (self.rules, self.vocab, self._words)

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """The rules, as spaCy's tokenizer stores them."""
        content: bytes = self.rules.to_bytes(exclude=exclude)
        return content

    def from_bytes(self, content: bytes, *, exclude: Iterable[str] = ()) -> Self:
        """Read the rules from bytes. Raises what spaCy's tokenizer raises for other bytes."""
        self.rules.from_bytes(content, exclude=exclude)
        self._clear_cache()
        return self

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        Path(path).write_bytes(self.to_bytes(exclude=exclude))

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> Self:
        return self.from_bytes(Path(path).read_bytes(), exclude=exclude)

    def zone(self) -> AbstractContextManager[Any]:
        """A context in which documents may be used; it bounds their memory once there are KEPT_WORDS new words.

        These include a language's frequent words; further words are dropped at the end of each zone.
        """
        full = len(self.vocab) >= self._max_words and not self.vocab.in_memory_zone
        zone: AbstractContextManager[Any] = self.vocab.memory_zone() if full else nullcontext()
        return zone

    def tokenize(self, text: str, max_tokens: int) -> Tokens:
        """The first `max_tokens` tokens of the text.

        A chunk has at least one token, so only the first `max_tokens` + 1 chunks are read. The text is normalised by
        `text.plain.plain`; forms and spans are those of the original.
        """
        normalised, shifts = plain(text)
        with self._lock:
            tokens = self._tokenize(normalised, max_tokens)
        if normalised != text:
            tokens.spans = starts, stops = shifts.original(*spans_of(normalised, tokens))
            tokens.forms = tuple([text[i:j] for i, j in zip(starts, stops, strict=True)])
        return tokens

    def _tokenize(self, text: str, max_tokens: int) -> Tokens:
        recent = self._recent.get
        texts = text.split()
        if len(text) <= MAX_CHUNK and " ".join(texts) == text:
            return Tokens.of([recent(part) or self._chunk(part) for part in texts], max_tokens)
        chunks, cut = [], False
        starts: list[int] = []
        for match in islice(_CHUNK.finditer(text), max_tokens + 1):
            part = match[0][:MAX_CHUNK]
            chunk = recent(part) or self._chunk(part)
            chunks.append(chunk)
            starts += accumulate(map(len, chunk.forms[:-1]), initial=match.start())
            cut = len(match[0]) > MAX_CHUNK
            if cut or len(starts) > max_tokens:
                break
        tokens = Tokens.of(chunks, max_tokens)
        tokens.cut |= cut
        tokens.spans = _spans(starts[:max_tokens], tokens.forms)
        return tokens

    def _chunk(self, text: str) -> Chunk:
        """A chunk that is not among the recent ones, and is from now on."""
        chunk = self._older.get(text)
        if not chunk:
            with self.zone():
                chunk = self._split(text)
        if len(text) <= MAX_CACHED_LENGTH:
            if len(self._recent) >= CACHED_CHUNKS:
                self._older, self._recent = self._recent, {}
            self._recent[text] = chunk
        return chunk

    def _split(self, text: str) -> Chunk:
        if self._words is None or not self._words.match(text) or text in self.rules.rules:
            return Chunk.of(self.rules(text))
        word = self.vocab[text]
        attributes = np.array([word.norm, word.prefix, word.suffix, word.shape], np.uint64)
        return Chunk((text,), (attributes.tobytes(),))


@registry.tokenizers(NAME)  # type: ignore[untyped-decorator]  # catalogue has no types
def make_tokenizer() -> Callable[[Language], TextTokenizer]:
    """The tokenizer of a new pipeline: spaCy's rules for its language, and `text.english` for English."""

    def create(nlp: Language) -> TextTokenizer:
        words = _LETTERS if nlp.lang == "en" else None
        return TextTokenizer(english.rules(nlp), nlp.vocab, words)

    return create


def split_words(content: bytes) -> tuple[bytes, ...]:
    """The ATTRIBUTES of n words, joined -> those of each word."""
    return tuple([content[i : i + WORD_BYTES] for i in range(0, len(content), WORD_BYTES)])


def hashes(words: Sequence[bytes]) -> Hashes:
    """The ATTRIBUTES of n words: (n, 4)."""
    return np.frombuffer(b"".join(words), np.uint64).reshape(-1, len(ATTRIBUTES))


def _spans(starts: Iterable[int], forms: Sequence[str]) -> Spans:
    """The spans of tokens with these starts and forms."""
    offsets = tuple(starts)
    return offsets, tuple(map(add, offsets, map(len, forms)))


def spans_of(text: str, tokens: Tokens) -> Spans:
    return tokens.spans or adjoining(text, tokens.forms)


def adjoining(text: str, forms: Sequence[str]) -> Spans:
    """The spans of tokens that adjoin in a text, or are separated by a blank."""
    starts, position = [], 0
    for form in forms:
        position += text.startswith(" ", position)
        starts.append(position)
        position += len(form)
    return _spans(starts, forms)

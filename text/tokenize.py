"""Text -> tokens, by spaCy's tokenizer: any Unicode, of any length."""

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import heedful.text.spacy_import  # noqa: F401  # before spaCy  # isort: skip

import numpy as np
from spacy.attrs import IDX, LENGTH
from spacy.tokens import Doc
from spacy.vocab import Vocab

from heedful.text.arrays import Ints
from heedful.text.plain import plain, unescape

MAX_RUN = 500
"""Longest run of characters without white space: spaCy's tokenizer is quadratic in its length."""
WINDOW = 1024
"""Characters tokenized first; more of a longer text is tokenized only as long as it may fit."""
KEPT_WORDS = 10_000
"""Words that the vocabulary keeps for good, about 4 MB. spaCy takes ten times as long for an unknown word; its
cache of how runs are split is of the same size."""
_RUN = re.compile(r"\S+")
_PLACE = [IDX, LENGTH]


@dataclass(frozen=True, slots=True)
class Tokenized:
    """A text's first tokens; `offsets` says where they stand."""

    doc: Doc
    runs: "_Runs | None"  # where the text of `doc` is not the text, what it was joined from
    cut: bool  # whether later tokens were left out
    entities: "_Entities | None" = None  # that the text holds


class TextTokenizer:
    """A tokenizer, used inside `with tokenizer.zone():`, which bounds the memory that texts take."""

    def __init__(
        self,
        tokenize: Callable[[str], Doc],
        vocab: Vocab,
        zone: Callable[[], AbstractContextManager[Any]],
    ) -> None:
        self._tokenize = tokenize
        self._vocab = vocab
        self._zone = zone
        self._max_words = len(vocab) + KEPT_WORDS

    def zone(self) -> AbstractContextManager[Any]:
        """Documents may be used inside it. After KEPT_WORDS words nothing more is kept.

        By then a language's frequent words are known; other words are forgotten at the end of each zone.
        """
        return self._zone() if len(self._vocab) >= self._max_words else nullcontext()

    def tokenize(self, text: str, max_tokens: int) -> Tokenized:
        """The first `max_tokens` tokens of the text.

        White space of any length becomes one blank, which is no token for spaCy, as in the treebanks
        that parsers are trained on. A run between white space holds at least one token, so only the
        first `max_tokens` + 1 runs are read. Typographic marks are read as plain ones, which stand in the same places,
        HTML entities as their characters.
        """
        text = plain(text)
        if "&" in text:
            unescaped, places = unescape(text)
            if places:
                found = self._read(unescaped, max_tokens)
                return replace(found, entities=_Entities(places))
        return self._read(text, max_tokens)

    def _read(self, text: str, max_tokens: int) -> Tokenized:
        if len(text) <= MAX_RUN and " ".join(text.split()) == text:
            doc, cut = self._first(text, max_tokens)
            return Tokenized(doc, None, cut)
        found = list(islice(_RUN.finditer(text), max_tokens + 1))
        too_long = [i for i, run in enumerate(found) if run.end() - run.start() > MAX_RUN]
        found = found[: too_long[0] + 1] if too_long else found
        runs = _Runs([run.group()[:MAX_RUN] for run in found], [run.start() for run in found])
        width = WINDOW
        while True:
            beginning = runs.within(width)
            doc, cut = self._first(" ".join(beginning), max_tokens)
            if cut or len(beginning) == len(runs.texts):
                return Tokenized(doc, runs, cut or bool(too_long))
            width *= 4

    def _first(self, text: str, max_tokens: int) -> tuple[Doc, bool]:
        """The first tokens of a text, and whether it has more."""
        doc = self._tokenize(text)
        return (doc[:max_tokens].as_doc(), True) if len(doc) > max_tokens else (doc, False)


class _Entities:
    """Where the characters of entities stand, to tell where their entities do."""

    def __init__(self, places: Sequence[tuple[int, int]]) -> None:
        """`places` as `unescape` gives them."""
        at, lengths = np.array(places, np.int64).T
        self._at = at
        self._longer = np.concatenate([[0], np.cumsum(lengths - 1)])

    def offsets(self, unescaped: Ints) -> Ints:
        """Offsets without entities -> offsets in the text."""
        offsets: Ints = unescaped + self._longer[np.searchsorted(self._at, unescaped)]
        return offsets


class _Runs:
    """The runs between white space, with their offsets in the text and joined by single blanks."""

    def __init__(self, texts: list[str], starts: list[int]) -> None:
        self.texts = texts
        self._joined = np.cumsum([0, *(len(text) + 1 for text in texts)])
        self._shifts = np.array(starts, np.int64) - self._joined[:-1]

    def within(self, width: int) -> list[str]:
        """The first runs, at least one, that fit into `width` characters once joined."""
        return self.texts[: max(1, int(np.searchsorted(self._joined[1:], width)))]

    def offsets(self, joined: Ints) -> Ints:
        """Offsets in the joined runs -> offsets in the text."""
        run = np.searchsorted(self._joined, joined, side="right") - 1
        offsets: Ints = joined + self._shifts[run]
        return offsets


def effort(text: str, max_tokens: int) -> int:
    """The highest cost of tokenizing a text up to `max_tokens`, in squared characters of about 0.5 µs each."""
    runs = text.split(maxsplit=max_tokens)[:max_tokens]
    return sum(min(len(run), MAX_RUN) ** 2 for run in runs)


def offsets(texts: Sequence[Tokenized]) -> tuple[Ints, Ints]:
    """Where the tokens of all texts, one text after the other, start and stop in their own text: (N,) and (N,)."""
    if not texts:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    columns = np.concatenate([one.doc.to_array(_PLACE) for one in texts]).astype(np.int64)
    starts, lengths = columns[:, 0].copy(), columns[:, 1]
    stops = starts + lengths
    end = 0
    for one in texts:
        begin, end = end, end + len(one.doc)
        if one.runs:
            starts[begin:end] = one.runs.offsets(starts[begin:end])
            stops[begin:end] = starts[begin:end] + lengths[begin:end]
        if one.entities:
            starts[begin:end] = one.entities.offsets(starts[begin:end])
            stops[begin:end] = one.entities.offsets(stops[begin:end])
    return starts, stops

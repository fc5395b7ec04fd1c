"""Text -> tokens, by spaCy's tokenizer: any Unicode, of any length."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import accumulate, chain, islice, repeat
from operator import itemgetter
from typing import Any

import heedful.text.spacy_import  # noqa: F401  # before spaCy  # isort: skip

from spacy.tokens import Doc
from spacy.vocab import Vocab

from heedful.text.plain import plain, unescape
from heedful.text.tokens import Run, Tokens

MAX_RUN = 500
"""Longest run of characters without white space: spaCy's tokenizer is quadratic in its length."""
KEPT_WORDS = 10_000
"""Words that the vocabulary keeps for good, about 4 MB. spaCy takes ten times as long for an unknown word."""
KEPT_RUNS = 10_000
"""Runs in each of two generations, in 4 MB, at worst 20: a full one takes the place of the older one, whose runs are
forgotten unless they were met again. spaCy takes 60 µs for a run."""
LONGEST_KEPT = 24
"""Characters of a run that is kept."""
_RUN = re.compile(r"\S+")


class TextTokenizer:
    """Splits a text at white space, then each run of other characters by itself, whatever stands beside it."""

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
        self._known: dict[str, Run] = {}
        self._known_before: dict[str, Run] = {}

    def zone(self) -> AbstractContextManager[Any]:
        """Documents may be used inside it, which bounds their memory. After KEPT_WORDS words nothing more is kept.

        By then a language's frequent words are known; other words are forgotten at the end of each zone.
        """
        return self._zone() if len(self._vocab) >= self._max_words else nullcontext()

    def tokenize(self, text: str, max_tokens: int) -> Tokens:
        """The first `max_tokens` tokens of the text.

        A run between white space holds at least one token, so only the first `max_tokens` + 1 runs are read.
        Typographic marks are read as plain ones, which stand in the same places, HTML entities as their characters.
        """
        text = plain(text)
        if "&" in text:
            unescaped, places = unescape(text)
            if places:
                tokens = self._read(unescaped, max_tokens)
                _restore(tokens, places)
                return tokens
        return self._read(text, max_tokens)

    def _read(self, text: str, max_tokens: int) -> Tokens:
        runs = text.split()
        if len(text) <= MAX_RUN and " ".join(runs) == text:
            return self._collect(runs, chain([0], repeat(1)), max_tokens)
        found = list(islice(_RUN.finditer(text), max_tokens + 1))
        too_long = [i for i, run in enumerate(found) if run.end() - run.start() > MAX_RUN]
        found = found[: too_long[0] + 1] if too_long else found
        ends = [0, *(run.end() for run in found)]
        gaps = [run.start() - end for run, end in zip(found, ends, strict=False)]
        tokens = self._collect([run[0][:MAX_RUN] for run in found], gaps, max_tokens)
        tokens.cut |= bool(too_long)
        return tokens

    def _collect(self, runs: Iterable[str], gaps: Iterable[int], max_tokens: int) -> Tokens:
        """The first tokens of the runs. `gaps` is how many characters of white space stand before each."""
        read, starts, stops, keys = [], [], [], []
        at = 0
        for text, gap in zip(runs, gaps, strict=False):
            run = self._known.get(text) or self._split(text)
            read.append(run)
            at += gap
            for start, stop, key in run.tokens:
                starts.append(at + start)
                stops.append(at + stop)
                keys.append(key)
            if len(keys) > max_tokens:
                for each in (starts, stops, keys):
                    del each[max_tokens:]
                return Tokens(read, starts, stops, keys, cut=True)
            at += len(text)
        return Tokens(read, starts, stops, keys)

    def _split(self, text: str) -> Run:
        """The tokens of a run that is not in `_known`."""
        run = self._known_before.get(text)
        if run is None:
            with self.zone():
                run = Run.of(self._tokenize(text))
        if len(text) <= LONGEST_KEPT:
            if len(self._known) >= KEPT_RUNS:
                self._known_before, self._known = self._known, {}
            self._known[text] = run
        return run


def _restore(tokens: Tokens, places: Sequence[tuple[int, int]]) -> None:
    """Move the tokens from where they stand without HTML entities to where they stand with them.

    `places` as `unescape` gives them.
    """
    longer = [0, *accumulate(length - 1 for _, length in places)]  # than the character

    def moved(offsets: list[int]) -> list[int]:
        return [
            offset + longer[bisect_left(places, offset, key=itemgetter(0))] for offset in offsets
        ]

    tokens.starts, tokens.stops = moved(tokens.starts), moved(tokens.stops)


def effort(text: str, max_tokens: int) -> int:
    """The highest cost of tokenizing a text up to `max_tokens`, in squared characters of about 0.5 µs each."""
    runs = text.split(maxsplit=max_tokens)[:max_tokens]
    return sum(min(len(run), MAX_RUN) ** 2 for run in runs)

"""Text -> tokens, by spaCy's tokenizer: any Unicode, of any length."""

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import accumulate, islice
from operator import itemgetter, mul
from typing import Any

import heedful.text.spacy_import  # noqa: F401  # before spaCy  # isort: skip

from spacy.tokenizer import Tokenizer
from spacy.tokens import Doc
from spacy.vocab import Vocab

from heedful.text.plain import LONGEST_KEPT, plain, unescape
from heedful.text.tokens import Run, Tokens, adjoining, spans

MAX_RUN = 500
"""Longest run of characters without white space: spaCy's tokenizer is quadratic in its length."""
KEPT_WORDS = 10_000
"""Words that the vocabulary keeps for good, about 4 MB. spaCy takes ten times as long for an unknown word."""
KEPT_RUNS = 16_384
"""Runs in each of two generations, in 7 MB, at worst 30: a full one takes the place of the older one, whose runs are
forgotten unless they were met again. spaCy takes 60 µs for a run."""
MARKS = frozenset(".,!?;:")
"""What most words with a mark behind them have there."""
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
        read = plain(text)
        places: list[tuple[int, int]] = []
        if "&" in read:
            unescaped, places = unescape(read)
            read = unescaped if places else read
        tokens = self._read(read, max_tokens)
        if read != text:
            _restore(tokens, read, places, text)
        return tokens

    def _read(self, text: str, max_tokens: int) -> Tokens:
        find = self._known.get
        texts = text.split()
        if len(text) <= MAX_RUN and " ".join(texts) == text:
            return Tokens.of([find(one) or self._split(one) for one in texts], max_tokens)
        runs: list[Run] = []
        starts: list[int] = []
        cut = False
        for found in islice(_RUN.finditer(text), max_tokens + 1):
            spelling = found[0][:MAX_RUN]
            run = find(spelling) or self._split(spelling)
            runs.append(run)
            starts += [found.start() + start for start in run.starts]
            cut = len(found[0]) > MAX_RUN
            if cut or len(starts) > max_tokens:
                break
        tokens = Tokens.of(runs, max_tokens)
        tokens.cut |= cut
        tokens.spans = spans(starts[:max_tokens], tokens.forms)
        return tokens

    def _split(self, text: str) -> Run:
        """The tokens of a run that is not in `_known`."""
        run = self._known_before.get(text)
        run = run or self._plain_run(text)
        if run is None:
            with self.zone():
                run = Run.of(self._tokenize(text))
        if len(text) <= LONGEST_KEPT:
            if len(self._known) >= KEPT_RUNS:
                self._known_before, self._known = self._known, {}
            self._known[text] = run
        return run

    def _plain_run(self, text: str) -> Run | None:
        """A word of ASCII letters, and the mark behind it if there is one: most runs are such.

        None for other runs, and for words that a rule of the tokenizer splits.
        """
        rules = self._tokenize
        if not isinstance(rules, Tokenizer) or None in (
            rules.prefix_search,
            rules.suffix_search,
            rules.infix_finditer,
        ):
            return None
        word, mark = (text[:-1], text[-1]) if text[-1] in MARKS else (text, "")
        if not (word.isascii() and word.isalpha()) or word in rules.rules:
            return None
        if (
            rules.prefix_search(word)
            or rules.suffix_search(word)
            or any(rules.infix_finditer(word))
        ):
            return None
        run = Run.of_word(word, self._vocab)
        if not mark:
            return run
        if {text, mark} & rules.rules.keys() or rules.prefix_search(text):
            return None
        found = rules.suffix_search(text)
        if not found or found[0] != mark or (rules.token_match and rules.token_match(text)):
            return None
        return run.then(Run.of_word(mark, self._vocab))


def _restore(tokens: Tokens, read: str, places: Sequence[tuple[int, int]], text: str) -> None:
    """Give the tokens that were read their forms and spans in the text: HTML entities are longer there.

    `places` as `unescape` gives them.
    """
    longer = [0, *accumulate(length - 1 for _, length in places)]  # than the character

    def moved(offsets: Sequence[int]) -> tuple[int, ...]:
        return tuple(
            offset + longer[bisect_left(places, offset, key=itemgetter(0))] for offset in offsets
        )

    starts, stops = map(moved, tokens.spans or adjoining(read, tokens.forms))
    tokens.spans = starts, stops
    tokens.forms = tuple([text[start:stop] for start, stop in zip(starts, stops, strict=True)])


def effort(text: str, max_tokens: int) -> int:
    """The highest cost of tokenizing a text up to `max_tokens`, in squared characters of about 0.5 µs each."""
    lengths = list(map(len, text.split(maxsplit=max_tokens)[:max_tokens]))
    if len(text) > MAX_RUN:
        lengths = [min(length, MAX_RUN) for length in lengths]
    return sum(map(mul, lengths, lengths))

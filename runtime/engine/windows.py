"""A text that is longer than a model reads -> windows that it can read, one after another."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from heedful.runtime.answers import normalise
from heedful.runtime.engine.work import Steps, parse
from heedful.runtime.inputs import Inputs, Item
from heedful.runtime.loaded_model import LoadedModel
from heedful.text.arrays import Floats
from heedful.text.parse import Parse, ParseJob, Parser

MAX_WINDOWS = 128
"""What follows them in a text is cut: with 256 tokens a window, 25,000 words."""
PARSED_WINDOWS = 4
"""How many are cut from one parse."""
_RUN = re.compile(r"\S+")
_LONG_RUN = re.compile(r"\S{100}(?=\S)")
"""Broken up: the tokenizer takes time quadratic in a run's length."""


@dataclass(frozen=True, slots=True)
class Windows:
    """A request's inputs, where long texts are replaced by their windows."""

    rows: Inputs
    windows: Mapping[int, Sequence[str]]  # of the long texts, by their row
    truncated: int  # texts of more than MAX_WINDOWS

    def inputs(self) -> Inputs:
        """One input for each window, and for each input that needs none."""
        items: list[Item] = []
        paths: list[str] = []
        for row, item in enumerate(self.rows.items):
            pieces = self.windows.get(row, (item,))
            items += pieces
            paths += [self.rows.paths[row]] * len(pieces)
        return Inputs(items, paths, self.rows.path)

    def means(self, vectors: Floats, tokens: Sequence[int]) -> Floats:
        """Vectors of `inputs`, which have `tokens` tokens -> one vector for each row.

        A mean is taken of vectors of length 1, weighted by tokens, as clients do that cut texts themselves.
        """
        means = np.empty((len(self.rows.items), vectors.shape[1]), np.float32)
        end = 0
        for row in range(len(means)):
            begin, end = end, end + len(self.windows.get(row, " "))
            means[row] = vectors[begin]
            if row in self.windows:
                means[row] = np.average(normalise(vectors[begin:end]), 0, tokens[begin:end])
        return means


def split(
    inputs: Inputs, long: Sequence[int], model: LoadedModel, parser: Parser
) -> Steps[Windows]:
    """Cut the `long` inputs into windows of as many tokens as the model reads, at white space.

    Raises BadInput if one of them is a tree.
    """
    inputs.check_are_texts(long)
    cutters = {row: _Cutter(str(inputs.items[row]), model) for row in long}
    left = list(cutters.values())
    while left:
        jobs = [cutter.candidate() for cutter in left]
        parses = yield from parse(parser, jobs)
        for cutter, cut in zip(left, parses, strict=True):
            cutter.take(cut)
        left = [cutter for cutter in left if cutter.has_more and len(cutter.windows) < MAX_WINDOWS]
        yield None
    windows = {row: cutter.windows for row, cutter in cutters.items()}
    return Windows(inputs, windows, sum(cutter.has_more for cutter in cutters.values()))


class _Cutter:
    """One text, from which windows are cut."""

    def __init__(self, text: str, model: LoadedModel) -> None:
        self._text = _LONG_RUN.sub(r"\g<0> ", text)
        self._limit, self._fitting = model.card.max_tokens, model.vocab.fitting
        self._at = 0
        self.windows: list[str] = []

    @property
    def has_more(self) -> bool:
        return _RUN.search(self._text, self._at) is not None

    def candidate(self) -> ParseJob:
        """The next part of the text: a run between white space holds at least one token."""
        tokens = PARSED_WINDOWS * self._limit
        *_, last = islice(_RUN.finditer(self._text, self._at), tokens)
        return ParseJob(self._text[self._at : last.end()], tokens, tree=False)

    def take(self, parse: Parse) -> None:
        """Cut windows from the candidate's tokens, at the last white space that they hold, if any."""
        if not len(parse):
            self._at += len(parse.text)
            return
        is_end = not parse.cut and self._at + len(parse.text) >= len(self._text.rstrip())
        nexts = (*parse.starts[1:], _next_start(parse))
        spaced = np.greater(nexts, parse.stops)
        begin = 0
        while begin < len(parse):
            tokens = parse.tokens[begin : begin + self._limit]
            end = begin + max(1, self._fitting(tokens))
            if end == len(parse) and begin and not is_end:
                break  # it continues in the next candidate
            if end < len(parse) or not is_end:
                gaps = np.flatnonzero(spaced[begin:end])
                end = begin + int(gaps[-1]) + 1 if len(gaps) else end
            window = slice(parse.starts[begin], parse.stops[end - 1])
            self.windows.append(parse.text[window])
            begin = end
        self._at += parse.stops[begin - 1]


def _next_start(parse: Parse) -> int:
    """Where the first character after the last token is that is not white space."""
    after = _RUN.search(parse.text, parse.stops[-1])
    return after.start() if after else len(parse.text)

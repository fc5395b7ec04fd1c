"""Texts with more tokens than a model reads -> consecutive windows that it can read."""

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
from heedful.text.parse import Parse, Parser

MAX_WINDOWS = 128
"""Windows of a text; its rest is cut. With 256 tokens a window they hold 25,000 words."""
PARSED_WINDOWS = 4
"""Windows that are cut from one parse."""
_RUN = re.compile(r"\S+")
_LONG_RUN = re.compile(r"\S{100}(?=\S)")
"""Runs of characters are broken up: the tokenizer takes time quadratic in a run's length."""


@dataclass(frozen=True, slots=True)
class Windows:
    """A request's inputs, in which windows replace the long texts."""

    rows: Inputs
    windows: Mapping[int, Sequence[str]]  # of each long text, by its row
    truncated: int  # texts of more than MAX_WINDOWS

    def inputs(self) -> Inputs:
        """An input for each window, and for each row that needs none."""
        items: list[Item] = []
        paths: list[str] = []
        for row, item in enumerate(self.rows.items):
            texts = self.windows.get(row, (item,))
            items += texts
            paths += [self.rows.paths[row]] * len(texts)
        return Inputs(items, paths, self.rows.path)

    def means(self, vectors: Floats, tokens: Sequence[int]) -> Floats:
        """Vectors of `inputs`, which have `tokens` tokens -> a vector for each row.

        A long text's vector is the mean of its windows' vectors, each of length 1, weighted by their tokens: as clients
        average that cut texts themselves.
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
    """Cut the `long` inputs, which are rows, into windows of as many tokens as the model reads, at white space.

    Raises BadInput if a long input is a tree.
    """
    inputs.check_are_texts(long)
    cutters = {row: _Cutter(str(inputs.items[row]), model) for row in long}
    unfinished = list(cutters.values())
    while unfinished:
        parts = [cutter.next_part() for cutter in unfinished]
        parses = yield from parse(parser, parts, PARSED_WINDOWS * model.card.max_tokens, tree=False)
        for cutter, parsed in zip(unfinished, parses, strict=True):
            cutter.cut(parsed)
        unfinished = [
            cutter for cutter in unfinished if cutter.has_more and len(cutter.windows) < MAX_WINDOWS
        ]
        yield None
    windows = {row: cutter.windows for row, cutter in cutters.items()}
    return Windows(inputs, windows, sum(cutter.has_more for cutter in cutters.values()))


class _Cutter:
    """A text, from which windows are cut."""

    def __init__(self, text: str, model: LoadedModel) -> None:
        self._text = _LONG_RUN.sub(r"\g<0> ", text)
        self._limit, self._fitting = model.card.max_tokens, model.vocab.fitting
        self._position = 0
        self.windows: list[str] = []

    @property
    def has_more(self) -> bool:
        return _RUN.search(self._text, self._position) is not None

    def next_part(self) -> str:
        """The next part of the text, of as many runs as PARSED_WINDOWS hold tokens: a run is at least one token."""
        runs = _RUN.finditer(self._text, self._position)
        *_, last = islice(runs, PARSED_WINDOWS * self._limit)
        return self._text[self._position : last.end()]

    def cut(self, parse: Parse) -> None:
        """Cut windows from the tokens of `next_part`, each at its last white space, if it holds any."""
        if not len(parse):
            self._position += len(parse.text)
            return
        is_end = not parse.cut and self._position + len(parse.text) >= len(self._text.rstrip())
        run = _RUN.search(parse.text, parse.stops[-1])  # what follows the last token
        nexts = (*parse.starts[1:], run.start() if run else len(parse.text))
        spaced = np.greater(nexts, parse.stops)
        begin = 0
        while begin < len(parse):
            tokens = parse.tokens[begin : begin + self._limit]
            end = begin + max(1, self._fitting(tokens))
            if end == len(parse) and begin and not is_end:
                break  # the window continues in the next part
            if end < len(parse) or not is_end:
                gaps = np.flatnonzero(spaced[begin:end])
                end = begin + int(gaps[-1]) + 1 if len(gaps) else end
            window = slice(parse.starts[begin], parse.stops[end - 1])
            self.windows.append(parse.text[window])
            begin = end
        self._position += parse.stops[begin - 1]

"""A text that is longer than a model reads -> windows that it can read, one after another."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt

from heedful.runtime.answers import normalise
from heedful.runtime.inputs import Inputs, Item
from heedful.runtime.loaded_model import LoadedModel
from heedful.runtime.steps import Parses
from heedful.text.parse import Parse, ParseJob
from heedful.text.tokenize import MAX_RUN

_RUN = re.compile(r"\S+")
_LONG_RUN = re.compile(rf"\S{{{MAX_RUN}}}(?=\S)")


@dataclass(frozen=True, slots=True)
class Windows:
    """A request's inputs, where long texts are replaced by their windows."""

    rows: Inputs
    windows: Mapping[int, Sequence[str]]  # of the long texts, by their row

    def inputs(self) -> Inputs:
        """One input for each window, and for each input that needs none."""
        items: list[Item] = []
        paths: list[str] = []
        for row, item in enumerate(self.rows.items):
            pieces = self.windows.get(row, (item,))
            items += pieces
            paths += [self.rows.paths[row]] * len(pieces)
        return Inputs(items, paths, self.rows.path)

    def means(
        self, vectors: npt.NDArray[np.float32], tokens: Sequence[int]
    ) -> npt.NDArray[np.float32]:
        """Vectors of `inputs`, which have so many `tokens` -> one vector for each row.

        A mean is taken of vectors of length 1, weighted by tokens, as by clients that cut texts.
        """
        means = np.empty((len(self.rows.items), vectors.shape[1]), np.float32)
        end = 0
        for row in range(len(means)):
            begin, end = end, end + len(self.windows.get(row, " "))
            means[row] = vectors[begin]
            if row in self.windows:
                means[row] = np.average(normalise(vectors[begin:end]), 0, tokens[begin:end])
        return means


async def split(inputs: Inputs, long: Sequence[int], model: LoadedModel, parses: Parses) -> Windows:
    """Cut the `long` inputs into windows of as many tokens as the model reads, at white space.

    Raises BadInput if one of them is a tree, and what `Parses.get` raises.
    """
    inputs.check_are_texts(long)
    cutters = {row: _Cutter(str(inputs.items[row])) for row in long}
    limit = model.card.max_tokens
    left = list(cutters.values())
    while left:
        jobs = [ParseJob(cutter.candidate(limit), limit, tree=False) for cutter in left]
        for cutter, parse in zip(left, await parses.get(jobs), strict=True):
            cutter.take(model.fit(parse))
        left = [cutter for cutter in left if cutter.has_more()]
        await asyncio.sleep(0)  # let other requests run
    return Windows(inputs, {row: cutter.windows for row, cutter in cutters.items()})


class _Cutter:
    """One text, from which windows are cut."""

    def __init__(self, text: str) -> None:
        self._text = _LONG_RUN.sub(r"\g<0> ", text)  # the tokenizer reads no longer run
        self._at = 0
        self.windows: list[str] = []

    def has_more(self) -> bool:
        return _RUN.search(self._text, self._at) is not None

    def candidate(self, runs: int) -> str:
        """The next text that may be a window: a run between white space holds at least one token."""
        *_, last = islice(_RUN.finditer(self._text, self._at), runs)
        return self._text[self._at : last.end()]

    def take(self, parse: Parse) -> None:
        """Cut the next window: the candidate's parsed tokens, up to the last white space among them."""
        stop = len(parse.text)
        if parse.cut:
            starts = np.append(parse.starts[1:], _next_start(parse))
            spaced = np.flatnonzero(starts > parse.stops)
            stop = int(parse.stops[spaced[-1] if len(spaced) else -1])
        if len(parse):
            self.windows.append(parse.text[:stop])
        self._at += stop


def _next_start(parse: Parse) -> int:
    """Where the first character that is no white space stands behind the last token."""
    after = _RUN.search(parse.text, int(parse.stops[-1]))
    return after.start() if after else len(parse.text)

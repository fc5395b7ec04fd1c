"""Sentences of ids and heads -> padded batches: the only padding there is.

A sentence of L words has S ids: for a model of words S = L, for one of pieces (text.pieces) S is their
number, [CLS] and [SEP] among them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

PAD = 0
"""The id behind a sentence's end, in every vocabulary."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """Ids (S,), the index of each word's governor (L,), itself for a root, and its number of pieces (L,)."""

    ids: Ints
    heads: Ints
    pieces: Ints | None = None  # None where an id is a word

    def __len__(self) -> int:
        """L, in words."""
        return len(self.heads)

    @property
    def key(self) -> bytes:
        """Equal for two sentences that an encoder sees as the same."""
        pieces = b"" if self.pieces is None else self.pieces.tobytes()
        return len(self).to_bytes(8) + self.heads.tobytes() + pieces + self.ids.tobytes()


@dataclass(frozen=True, slots=True)
class Batch:
    """B sentences padded to the longest, L words and S ids."""

    ids: Ints  # (B, S), PAD behind a sentence's end
    heads: Ints  # (B, L), a padding token is its own head
    lengths: Ints  # (B,), in words
    padding: float  # share of `ids` that holds none, 0..1
    pieces: Ints | None = None  # (B, L), 0 behind a sentence's end


def collate(sentences: Sequence[Sentence]) -> Batch:
    """Pad to the longest, all of words or all of pieces. Raises ValueError for no sentence or an empty one."""
    lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
    if not len(lengths) or not lengths.min():
        raise ValueError("a batch needs at least one sentence, and each of them a token")
    B, L, S = len(sentences), int(lengths.max()), max(len(one.ids) for one in sentences)
    ids = np.full((B, S), PAD, np.int64)
    heads = np.tile(np.arange(L), (B, 1))
    pieces = None if sentences[0].pieces is None else np.zeros((B, L), np.int64)
    for row, sentence in enumerate(sentences):
        ids[row, : len(sentence.ids)] = sentence.ids
        heads[row, : len(sentence)] = sentence.heads
        if pieces is not None and sentence.pieces is not None:
            pieces[row, : len(sentence)] = sentence.pieces
    padding = 1.0 - sum(len(one.ids) for one in sentences) / ids.size
    return Batch(ids, heads, lengths, padding, pieces)


def plan(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Indices grouped into batches of like lengths, each of at most `budget` cells once padded.

    One sentence longer than the budget makes a batch of its own, so that every sentence is served.
    """
    groups: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        # Sorted: this sentence is the longest so far, and it sets the width of its batch.
        if groups and (len(groups[-1]) + 1) * lengths[index] <= budget:
            groups[-1].append(index)
        else:
            groups.append([index])
    return groups


def cheapest(lengths: Sequence[int], budget: int, overhead: int) -> list[list[int]]:
    """Indices grouped into batches of at most `budget` cells once padded, as `plan` does, at the least cost.

    A batch costs `overhead` and its cells: padding is paid for, and so is each batch more.
    """
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    # A length, and how many of it: sentences that nothing is gained by parting.
    runs: list[tuple[int, int]] = []
    for length, equal in groupby(order, lengths.__getitem__):
        left, most = len(list(equal)), max(1, budget // length)
        runs += [(length, most)] * (left // most) + [(length, left % most)] * (left % most > 0)
    # Of the first runs: their least cost, and where the last of their batches begins.
    costs, begins = [0], [0]
    for end, (length, _) in enumerate(runs):
        best, begin, size = math.inf, end, 0
        for first in range(end, -1, -1):
            size += runs[first][1]
            if first < end and size * length > budget:
                break
            cost = costs[first] + overhead + size * length
            if cost < best:
                best, begin = cost, first
        costs.append(int(best))
        begins.append(begin)
    groups: list[list[int]] = []
    end, stop = len(runs), len(order)
    while end:
        begin = begins[end]
        start = stop - sum(count for _, count in runs[begin:end])
        groups.append(order[start:stop])
        end, stop = begin, start
    return groups[::-1]

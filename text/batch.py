"""Sentences of ids and heads -> padded batches. Only this module pads.

A sentence of L words has S ids. With a word vocabulary S = L; with word pieces (text.pieces) S counts the
pieces, [CLS] and [SEP] included. The id -k is row k - 1 of `features`, of a composed word (text.composition).
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Literal, Protocol, Self, TypeVar

import numpy as np

from heedful.text import composition
from heedful.text.arrays import Ints
from heedful.text.structure import without

PAD = 0
"""The padding id of all vocabularies."""

Output = TypeVar("Output", covariant=True)
T = TypeVar("T")
Map = Callable[[Callable[[Any], T], Iterable[Any]], Iterable[T]]
"""Calls a function for each item and yields the results in order: `map`, or that of a pool of threads."""


class Runner(Protocol[Output]):
    """A graph, and the costs of its batches, in padded tokens of a linear encoder."""

    @property
    def stage(self) -> Literal["parse", "inference"]: ...

    name: str
    """A model's or a graph's, for metrics and the log."""
    budget: int
    """Cost limit of a batch, so that it takes at most about 5 ms."""
    overhead: int
    """Fixed cost of a batch."""

    def costs(self, items: Sequence[Any]) -> list[int]:
        """Each item's cost in a batch whose longest it is."""

    def prepare(self, items: Sequence[Any]) -> Any:
        """The argument of `run` for a batch of these items. Only one thread at a time may call it."""

    def run(self, prepared: Any) -> Sequence[Output]:
        """Run the graph once: an output for each item, in order. Any thread may call it."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """Ids (S,), each word's governor (L,), which is itself for a root, and each word's number of pieces (L,)."""

    ids: Ints
    heads: Ints
    pieces: Ints | None = None  # None where an id is a word
    features: Ints | None = None  # (K, F) of the composed words; None without any

    def __len__(self) -> int:
        """L, in words."""
        return len(self.heads)

    @property
    def key(self) -> bytes:
        """Bytes that are equal for sentences with the same arrays."""
        arrays = (self.heads, self.pieces, self.ids, self.features)
        content = [array.tobytes() for array in arrays if array is not None]
        return b"".join([len(self.heads).to_bytes(8), *content])

    def without(self, removed: Sequence[int] | Ints) -> Self:
        """The sentence without the words at `removed`, as if they had never been parsed."""
        remains = np.ones(len(self), bool)
        remains[list(removed)] = False
        id_remains, pieces = remains, self.pieces
        if pieces is not None:  # [CLS] and [SEP] stay
            id_remains = np.pad(remains.repeat(pieces), 1, constant_values=True)
            pieces = pieces[remains]
        heads = without(self.heads, remains)
        return replace(self, ids=self.ids[id_remains], heads=heads, pieces=pieces)


@dataclass(frozen=True, slots=True)
class Batch:
    """B sentences padded to the longest, L words and S ids."""

    ids: Ints  # (B, S), PAD on padding
    heads: Ints  # (B, L), a padding token is its own head
    lengths: Ints  # (B,), in words
    pieces: Ints | None = None  # (B, L), 0 on padding
    features: Ints | None = None  # (K, F) of all composed words; None without any

    def feeds(self, inputs: Iterable[str], alpha: float | None) -> dict[str, Any]:
        """These inputs of an encoder's graph. Without composed words, features are a row of zeros."""
        feeds: dict[str, Any] = {}
        for name in inputs:
            if name == "alpha":
                feeds[name] = np.array(alpha, np.float32)
            elif name == "features" and self.features is None:
                feeds[name] = np.zeros((1, composition.FEATURES), np.int64)
            else:
                feeds[name] = getattr(self, name)
        return feeds

    def rows(self, indices: Ints) -> Self:
        """These sentences, padded to the longest of them; ids of pieces keep their width."""
        L = int(self.lengths[indices].max())
        ids = self.ids[indices] if self.pieces is not None else self.ids[indices, :L]
        return replace(
            self,
            ids=ids,
            heads=self.heads[indices, :L],
            lengths=self.lengths[indices],
            pieces=None if self.pieces is None else self.pieces[indices, :L],
        )


def collate(sentences: Sequence[Sentence]) -> Batch:
    """Pad to the longest sentence. Raises ValueError for no sentence or an empty one."""
    lengths = np.array([sentence.heads.size for sentence in sentences], np.int64)
    if not sentences or not lengths.all():
        raise ValueError("a batch needs at least one sentence, and each of them a token")
    sizes = np.array([sentence.ids.size for sentence in sentences])
    ids = _padded([sentence.ids for sentence in sentences], sizes, PAD)
    heads = _padded([sentence.heads for sentence in sentences], lengths, None)
    pieces = [sentence.pieces for sentence in sentences if sentence.pieces is not None]
    padded_pieces = _padded(pieces, lengths, 0) if pieces else None
    features = [sentence.features for sentence in sentences if sentence.features is not None]
    if not features:
        return Batch(ids, heads, lengths, padded_pieces)
    rows = [0 if sentence.features is None else len(sentence.features) for sentence in sentences]
    counts = np.array(rows)
    offsets: Ints = np.cumsum(counts) - counts
    ids -= offsets[:, None] * (ids < 0)  # the composed words of all sentences are numbered together
    return Batch(ids, heads, lengths, padded_pieces, np.concatenate(features))


def _padded(rows: Sequence[Ints], sizes: Ints, padding: int | None) -> Ints:
    """Rows of these sizes, padded: (B, L). None pads each place with its index."""
    places = np.arange(max(sizes.tolist()))
    padded = np.empty((len(rows), len(places)), np.int64)
    padded[:] = places if padding is None else padding
    padded[places < sizes[:, None]] = np.concatenate(rows)
    return padded


def cheapest(lengths: Sequence[int], budget: int, overhead: int) -> list[list[int]]:
    """Group indices into batches of at most `budget` cells once padded, at the lowest total cost.

    A batch costs `overhead` plus its cells, padding included.
    """
    if len(lengths) == 1:
        return [[0]]
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    # (length, count): splitting sentences of equal length gains nothing.
    runs: list[tuple[int, int]] = []
    for length, equal in groupby(order, lengths.__getitem__):
        count, size = len(list(equal)), max(1, budget // length)
        runs += [(length, size)] * (count // size) + [(length, count % size)] * (count % size > 0)
    # For each prefix of the runs: its lowest cost, and the beginning of its last batch.
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


def run_in_batches(
    runner: Runner[T],
    items: Sequence[Any],
    *,
    run_all: Map[Sequence[T]] = map,
    max_items: int | None = None,
) -> list[T]:
    """The runner's output for each item, in order. `run_all` may run several batches at once."""
    size = max_items or len(items)
    costs = runner.costs(items)
    batches = [
        batch[begin : begin + size]
        for batch in cheapest(costs, runner.budget, runner.overhead)
        for begin in range(0, len(batch), size)
    ]
    results = run_all(runner.run, (runner.prepare([items[i] for i in batch]) for batch in batches))
    outputs: dict[int, T] = {}
    for batch, batch_outputs in zip(batches, results, strict=True):
        outputs.update(zip(batch, batch_outputs, strict=True))
    return [outputs[i] for i in range(len(items))]

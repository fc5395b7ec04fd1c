"""Examples -> arrays: vocabularies, ids, batches in random order."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from heedful.text import composition
from heedful.text.arrays import Doubles, Ints
from heedful.text.batch import PAD, Batch
from heedful.text.pieces import Pieces
from heedful.text.plain import plain_word
from heedful.text.vocab import UNKNOWN, Vocab
from heedful.training.tasks.base import Example, Source

T = TypeVar("T")
SORTED_TOGETHER = 64
"""Batches whose examples are sorted by length together."""
SUBSAMPLE_SEED = 1


@dataclass(frozen=True, slots=True)
class Rows:
    """Ids and governors of N distinct texts, as `parses.Parsed` holds them; text i is `bounds[i]:bounds[i + 1]`."""

    index: dict[str, int]
    ids: Ints
    heads: npt.NDArray[np.int16]
    bounds: Ints
    framing: "Framing | None" = None  # None with a word vocabulary
    spelling: "Spelling | None" = None  # None without composed words

    def batch(self, chosen: Ints, drop: Callable[[int], npt.NDArray[np.bool_]] | None) -> Batch:
        """The `chosen` texts (B,), padded as by `collate`, without a loop over the texts.

        For words this is six times as fast (docs/gpu.md). `drop` takes the number of words and gives a mask of listed
        words that are composed too.
        """
        words, inside = padded_index(self.bounds, chosen)
        heads = np.tile(np.arange(inside.shape[1]), (len(chosen), 1))
        heads[inside] = self.heads[words]
        lengths = inside.sum(1)
        if self.framing:
            ids, pieces = self.framing.pad(self.ids, chosen), np.zeros_like(heads)
            pieces[inside] = self.framing.counts[words]
            return Batch(ids, heads, lengths, pieces)
        ids, features = self.ids[words], None
        if self.spelling:
            ids, features = self.spelling.compose(ids, drop)
        padded = np.full(inside.shape, PAD, np.int64)
        padded[inside] = ids
        return Batch(padded, heads, lengths, features=features)


@dataclass(frozen=True, slots=True)
class Framing:
    """Word pieces of texts: `counts` of each word's pieces, and `stops` (N + 1,), the bounds of the texts in pieces."""

    pieces: Pieces
    counts: Ints
    stops: Ints

    def pad(self, ids: Ints, chosen: Ints) -> Ints:
        """[CLS], the pieces of each chosen sentence, [SEP] and padding (B, S), from the `ids` of all pieces."""
        positions, inside = padded_index(self.stops, chosen)
        padded = np.full((len(chosen), inside.shape[1] + 2), PAD, np.int64)
        padded[:, 0] = self.pieces.cls
        padded[:, 1:-1][inside] = ids[positions]
        padded[np.arange(len(chosen)), 1 + inside.sum(1)] = self.pieces.sep
        return padded


@dataclass(frozen=True, slots=True)
class Spelling:
    """The features of the listed words (V, F), then of the K other words of some texts."""

    features: Ints  # (V + K, F)
    listed: int  # V

    @classmethod
    def number(cls, tokens: Sequence[str], ids: Ints, vocab: Vocab) -> Self:
        """Features of the list and of the unlisted tokens, whose `ids` become V, V + 1, .. in place."""
        numbers: dict[str, int] = {}
        for i in np.flatnonzero(ids == UNKNOWN).tolist():
            ids[i] = len(vocab) + numbers.setdefault(plain_word(tokens[i]), len(numbers))
        words = [*vocab.words, *numbers]
        return cls(composition.matrix(words, vocab.composed), len(vocab))

    def compose(
        self, ids: Ints, drop: Callable[[int], npt.NDArray[np.bool_]] | None
    ) -> tuple[Ints, Ints | None]:
        """The ids (S,) with -1, -2, .. for composed words, and the features (K, F) of these; None without any."""
        composed = ids >= self.listed
        if drop:
            composed |= drop(len(ids))
        if not composed.any():
            return ids, None
        features = self.features[ids[composed]]
        ids = ids.copy()
        ids[composed] = -1 - np.arange(len(features))
        return ids, features


def vocabulary(
    counts: Counter[str],
    background: Counter[str],
    has_vector: Callable[[Sequence[str]], npt.NDArray[np.bool_]],
    *,
    min_count: int,
    background_min_count: int | None,
    composed: int = 0,
    limit: int | None = None,
) -> Vocab:
    """Words of the training texts that have a vector or occur `min_count` times, and background words with
    a vector that occur `background_min_count` times, most frequent first, `limit` of them at most.
    """
    words = [*counts, *(word for word in background if word not in counts)]
    vectors = has_vector(words)
    listed = [
        word
        for word, known in zip(words, vectors, strict=True)
        if counts[word] >= min_count
        or (known and counts[word])
        or (known and background_min_count is not None and background[word] >= background_min_count)
    ]
    ordered = sorted(listed, key=lambda word: (-counts[word], -background[word], word))
    return Vocab(ordered[:limit], composed)


def evenly(items: Sequence[T], most: int) -> Sequence[T]:
    """At most `most` of the items, evenly spaced."""
    return items[:: -(-len(items) // most)]


def subsample(
    parts: list[tuple[Source, list[Example]]], rows: int | None
) -> list[tuple[Source, list[Example]]]:
    """A random sample of `rows` examples over all parts, always the same; all of them for None or fewer than `rows`."""
    total = sum(len(examples) for _, examples in parts)
    if rows is None or rows >= total:
        return parts
    chosen = np.zeros(total, np.bool_)
    chosen[np.random.default_rng(SUBSAMPLE_SEED).permutation(total)[:rows]] = True
    sampled, start = [], 0
    for source, examples in parts:
        mask = chosen[start : start + len(examples)].tolist()
        start += len(examples)
        note = f"{source.note}; drawn at random from {len(examples):,}"
        sampled.append((replace(source, note=note), list(compress(examples, mask))))
    return sampled


def class_numbers(labels: Sequence[str], known: Sequence[str]) -> Ints:
    """The number (N,) of each label among the `known`, -1 for another label."""
    numbers = {label: i for i, label in enumerate(known)}
    return np.array([numbers.get(label, -1) for label in labels], np.int64)


def labels(examples: Sequence[Example]) -> Doubles:
    """(N,) the labels."""
    return np.array([example.label for example in examples], np.float64)


def padded_index(bounds: Ints, chosen: Ints) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Positions (N,) and mask (B, L) that gather ragged rows, `bounds[i]:bounds[i + 1]` each, into a padded batch."""
    lengths = bounds[chosen + 1] - bounds[chosen]
    columns = np.arange(lengths.max())
    inside = columns < lengths[:, None]
    return (bounds[chosen][:, None] + columns)[inside], inside


def sorted_batches(order: Ints, lengths: Ints, size: int) -> list[Ints]:
    """Batches of examples of similar lengths: those in `order`, sorted within each SORTED_TOGETHER batches."""
    length = SORTED_TOGETHER * size
    runs = [order[start : start + length] for start in range(0, len(order), length)]
    runs = [run[np.argsort(lengths[run], kind="stable")] for run in runs]
    return [run[start : start + size] for run in runs for start in range(0, len(run), size)]


class Batches(Protocol):
    """N examples, in batches."""

    def __len__(self) -> int: ...

    def steps(self, size: int) -> int:
        """The number of batches in an epoch."""

    def batches(
        self, size: int, rng: np.random.Generator | None
    ) -> Iterator[tuple[list[Any], npt.NDArray[Any]]]:
        """The model's input and the targets (B, ..). Shuffled with `rng`, else in order of length."""


@dataclass(frozen=True, slots=True)
class Examples:
    """Rows and targets (N, ..) of N examples; `sides` (N, 1) or (N, 2) indexes `rows`."""

    rows: Rows
    sides: Ints
    targets: npt.NDArray[Any]
    groups: Sequence[Ints] = ()  # examples that are drawn together; empty: each is drawn alone
    subword_dropout: float = 0.0
    """Share of the listed words that shuffled batches compose from their subwords."""
    mixed: bool = False
    """Whether shuffled batches mix texts of all lengths, in place of similar ones."""

    def __len__(self) -> int:
        return len(self.targets)

    @classmethod
    def of(
        cls,
        examples: Sequence[Example],
        rows: Rows,
        targets: Callable[[Sequence[Example]], npt.NDArray[Any]] = labels,
    ) -> Self:
        """Examples whose texts are all in `rows`; the others are left out."""
        read = [item for item in examples if all(text in rows.index for text in item.texts)]
        sides = np.array([[rows.index[text] for text in item.texts] for item in read], np.int64)
        return cls(rows, sides, targets(read))

    def steps(self, size: int) -> int:
        """The number of batches in an epoch."""
        joined = len(self) > size > 1 and len(self) % size == 1  # see `batches`
        return -(-len(self) // size) - joined

    def batches(
        self, size: int, rng: np.random.Generator | None
    ) -> Iterator[tuple[list[Batch], npt.NDArray[Any]]]:
        """A `Batch` for each side, and targets (B, ..). Shuffled with `rng`, else in order of length.

        Shuffling keeps similar lengths together, unless they are `mixed`: examples are sorted within runs
        of 64 batches. A last batch of one example joins the one before it, because batch norm cannot train
        on one row.
        """

        def drop(length: int) -> npt.NDArray[np.bool_]:
            assert rng is not None
            return rng.random(length) < self.subword_dropout

        lengths = np.diff(self.rows.bounds)[self.sides].max(axis=1)
        if rng is None:
            groups = np.array_split(np.argsort(lengths, kind="stable"), -(-len(self) // size))
        else:
            # With equal lengths the order stays random.
            sorted_by = np.zeros_like(lengths) if self.mixed else lengths
            groups = sorted_batches(self._order(rng), sorted_by, size)
            if len(groups) > 1 and len(groups[-1]) == 1 < size:
                groups[-2:] = [np.concatenate(groups[-2:])]
            rng.shuffle(groups)
        for group in groups:
            sides = [
                self.rows.batch(self.sides[group, side], drop if rng else None)
                for side in range(self.sides.shape[1])
            ]
            yield sides, self.targets[group]

    def _order(self, rng: np.random.Generator) -> Ints:
        """The examples in random order, those of a group together."""
        if not self.groups:
            return rng.permutation(len(self))
        return np.concatenate([self.groups[i] for i in rng.permutation(len(self.groups))])

"""Sentences of ids and heads -> padded batches: the only padding there is.

A sentence of L words has S ids: for a model of words S = L, for one of pieces (text.pieces) S is their
number, [CLS] and [SEP] among them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

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

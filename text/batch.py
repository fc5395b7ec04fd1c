"""Sentences of ids and heads -> padded batches: the only padding there is."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from text.vocab import PAD

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Sentence:
    """Word ids (L,) and the index of each token's governor (L,), itself for a root."""

    ids: Ints
    heads: Ints

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def key(self) -> bytes:
        """Equal for two sentences that every encoder sees as the same."""
        return self.ids.tobytes() + self.heads.tobytes()


@dataclass(frozen=True, slots=True)
class Batch:
    """B sentences padded to the longest, L tokens."""

    ids: Ints  # (B, L), PAD behind a sentence's end
    heads: Ints  # (B, L), a padding token is its own head
    lengths: Ints  # (B,)

    @property
    def padding(self) -> float:
        """Share of the batch's cells that hold no token, 0..1."""
        return 1.0 - float(self.lengths.sum()) / self.ids.size


def collate(sentences: Sequence[Sentence]) -> Batch:
    """Pad to the longest. Raises ValueError for no sentence or an empty one."""
    lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
    if not len(lengths) or not lengths.min():
        raise ValueError("a batch needs at least one sentence, and each of them a token")
    longest = int(lengths.max())
    ids = np.full((len(sentences), longest), PAD, np.int64)
    heads = np.tile(np.arange(longest), (len(sentences), 1))
    for row, sentence in enumerate(sentences):
        ids[row, : len(sentence)] = sentence.ids
        heads[row, : len(sentence)] = sentence.heads
    return Batch(ids, heads, lengths)


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

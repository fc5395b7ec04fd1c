"""The tokens of a text as numbers: where they stand, and what the arc parser reads of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import heedful.text.spacy_import  # noqa: F401  # before spaCy  # isort: skip

import numpy as np
from spacy.attrs import IDX, LENGTH, NORM, ORTH, PREFIX, SHAPE, SUFFIX
from spacy.tokens import Doc

from heedful.text.arrays import Hashes

ATTRIBUTES = (NORM, PREFIX, SUFFIX, SHAPE)
"""What the vector of a token is made of. The norm comes first."""
_COLUMNS = [IDX, LENGTH, ORTH, *ATTRIBUTES]
_MIX = np.uint64(0x9E3779B97F4A7C15)


class Run(NamedTuple):
    """Characters between white space, and the n tokens that they are split into."""

    text: str
    tokens: tuple[tuple[int, int, int], ...]
    """Where each starts and stops in the run, and a key of its form and norm: "ca" of "can't" is not the "ca" alone."""
    hashes: bytes  # of the ATTRIBUTES: (n, 4) uint64

    @classmethod
    def of(cls, doc: Doc) -> Self:
        """A document as one run."""
        found = doc.to_array(_COLUMNS)  # (n, 7) uint64
        starts, lengths, forms, norms = found[:, :4].T
        stops, keys = starts + lengths, forms ^ norms * _MIX
        return cls(
            doc.text,
            tuple(zip(starts.tolist(), stops.tolist(), keys.tolist(), strict=True)),
            found[:, 3:].tobytes(),
        )


@dataclass(slots=True)
class Tokens:
    """The first tokens of a text."""

    runs: list[Run]  # that they come from; the last one may hold more
    starts: list[int]  # in the text
    stops: list[int]
    keys: list[int]
    cut: bool = False  # whether later tokens were left out

    @classmethod
    def of(cls, doc: Doc) -> Self:
        """All tokens of a document."""
        run = Run.of(doc)
        starts, stops, keys = ([token[i] for token in run.tokens] for i in range(3))
        return cls([run], starts, stops, keys)

    def __len__(self) -> int:
        return len(self.keys)


def hashes(texts: Sequence[Tokens]) -> Hashes:
    """The ATTRIBUTES of the tokens of all texts, one text after the other: (N, 4)."""
    width = np.dtype(np.uint64).itemsize * len(ATTRIBUTES)
    each = (b"".join(run.hashes for run in one.runs)[: width * len(one)] for one in texts)
    return np.frombuffer(b"".join(each), np.uint64).reshape(-1, len(ATTRIBUTES))

"""golden.npz: sentences, and a bundle's vectors and answers for them.

They are stored for each precision: vectors have length 1, answers are as the service gives them. The file holds the
hashes of the files that it was computed from, so that a bundle with other files does not pass for this one.
"""

import io
import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from heedful.runtime.answers import head_scores, normalise
from heedful.runtime.bundles.card import ENCODER, ENCODER_INT8, Card
from heedful.text.arrays import Doubles, Floats, Ints
from heedful.text.kinds import HEAD_INPUTS
from heedful.text.parse import Parse

Precision = Literal["int8", "float32"]

ENCODERS: Mapping[Precision, str] = {"float32": ENCODER, "int8": ENCODER_INT8}

TOLERANCE = 2e-3
"""Largest change of a value of a vector of length 1: rounding on another processor stays below it."""
ANSWER_TOLERANCE = 1e-2
"""Largest change of a probability, or of a relatedness from 1 to 5."""


@dataclass(frozen=True, slots=True, eq=False)
class Outputs:
    """The outputs of graphs of one precision for N sentences."""

    vectors: Floats  # (N, D), of length 1
    answers: Floats  # (N, C): of sentence i, or of i and i + 1 for a model of pairs; (N, 0) without a head


@dataclass(frozen=True, slots=True, eq=False)
class Golden:
    texts: Sequence[str]
    tokens: Sequence[Sequence[str]]
    heads: Sequence[Ints]
    outputs: Mapping[Precision, Outputs]
    files: Mapping[str, str]
    """SHA-256 of each file that the outputs depend on."""

    @classmethod
    def read(cls, content: bytes, hashes: Mapping[str, str]) -> Self:
        """Raises ValueError for another format, other files, or if a precision of the bundle is missing."""
        try:
            with np.load(io.BytesIO(content)) as arrays:
                metadata = json.loads(str(arrays["about"]))
                outputs: dict[Precision, Outputs] = {
                    name: Outputs(arrays[f"{name}_vectors"], arrays[f"{name}_answers"])
                    for name in metadata["precisions"]
                }
            golden = cls(
                metadata["texts"],
                metadata["tokens"],
                [np.array(heads, np.int64) for heads in metadata["heads"]],
                outputs,
                metadata["files"],
            )
        except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(f"not golden vectors: {error}") from error
        for name, expected in golden.files.items():
            if hashes.get(name) != expected:
                raise ValueError(f"was made from another {name}: {REMEDY}")
        for precision, encoder in ENCODERS.items():
            if encoder in hashes and precision not in golden.outputs:
                raise ValueError(f"has no vectors for {precision}, which {encoder} gives: {REMEDY}")
        return golden

    def to_bytes(self) -> bytes:
        metadata = {
            "texts": list(self.texts),
            "tokens": [list(tokens) for tokens in self.tokens],
            "heads": [heads.tolist() for heads in self.heads],
            "precisions": list(self.outputs),
            "files": dict(self.files),
        }
        arrays: dict[str, Any] = {"about": np.array(json.dumps(metadata))}
        for name, outputs in self.outputs.items():
            arrays[f"{name}_vectors"] = outputs.vectors
            arrays[f"{name}_answers"] = outputs.answers
        file = io.BytesIO()
        np.savez_compressed(file, **arrays)
        return file.getvalue()

    def moved_trees(self, parses: Iterable[Parse], card: Card) -> list[str]:
        """Changes of the tokens, and of the trees if the model reads them, in words."""
        moved = []
        for text, tokens, heads, parse in zip(
            self.texts, self.tokens, self.heads, parses, strict=True
        ):
            if list(parse.tokens) != list(tokens):
                moved.append(f"the tokens of {text!r} have changed")
            elif card.tree and not np.array_equal(parse.heads, heads):
                moved.append(f"the tree of {text!r} has changed")
        return moved

    def moved_outputs(self, outputs: Outputs, precision: Precision) -> list[str]:
        """Vectors and answers that have changed beyond their tolerance, in words, the largest change first."""
        expected = self.outputs[precision]
        moved = []
        for kind, limit in (("vector", TOLERANCE), ("answer", ANSWER_TOLERANCE)):
            differences = _differences(outputs, expected, kind)
            for i in np.argsort(-differences, kind="stable").tolist():
                if not differences[i] <= limit:  # also for NaN
                    figure = f"by {differences[i]:.2g} (at most {limit:g})"
                    moved.append(f"the {kind} of {self.texts[i]!r} moved {figure}")
        return moved

    def deviation(self, outputs: Outputs, precision: Precision) -> float:
        """Largest change of a value of a vector."""
        return float(_differences(outputs, self.outputs[precision], "vector").max())


REMEDY = "copy the bundle again, or export it again"


def outputs(card: Card, vectors: Floats, logits: Floats | None) -> Outputs:
    """From the encoder's vectors (N, W) and the head's logits (N, C)."""
    answers = np.zeros((len(vectors), 0)) if logits is None else head_scores(card, logits)
    return Outputs(normalise(vectors[:, : card.dimension]), answers.astype(np.float32))


def sides(card: Card, vectors: Floats) -> list[Floats]:
    """Inputs of the head: each vector, or each vector and the next."""
    return [np.roll(vectors, -side, axis=0) for side in range(len(HEAD_INPUTS[card.kind]))]


def _differences(outputs: Outputs, expected: Outputs, kind: str) -> Doubles:
    """(N,) the largest difference of each sentence's values; NaN where a value is NaN."""
    a, b = (getattr(side, f"{kind}s").astype(np.float64) for side in (outputs, expected))
    if not a.shape[1]:
        return np.zeros(len(a))
    differences: Doubles = np.abs(a - b).max(axis=1)
    return differences

"""golden.npz: sentences, and the vectors and answers that a bundle gives for them.

Each kind of graph has its own: vectors are of length 1, answers as the service gives them. The file names
the hashes of the files it was made from, so that a bundle of other files does not pass for this one.
"""

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from heedful.runtime.answers import expected_score, normalise, probabilities
from heedful.runtime.bundles.card import ENCODER, ENCODER_INT8, Card
from heedful.runtime.engine.graphs import head_inputs
from heedful.text.arrays import Doubles, Floats, Ints
from heedful.text.parse import Parse

Precision = Literal["int8", "float32"]

ENCODERS: Mapping[Precision, str] = {"float32": ENCODER, "int8": ENCODER_INT8}

TOLERANCE = 2e-3
"""Largest change of a value of a vector of length 1: rounding on another processor stays below it."""
ANSWER_TOLERANCE = 1e-2
"""Largest change of a probability, or of a relatedness from 1 to 5."""


@dataclass(frozen=True, slots=True, eq=False)
class Outputs:
    """What one kind of graph gives for N sentences."""

    vectors: Floats  # (N, D), of length 1
    answers: Floats  # (N, C): of sentence i, or of i and i + 1 for a model of pairs; (N, 0) without a head


@dataclass(frozen=True, slots=True, eq=False)
class Golden:
    texts: Sequence[str]
    tokens: Sequence[Sequence[str]]
    heads: Sequence[Ints]
    outputs: Mapping[Precision, Outputs]
    files: Mapping[str, str]
    """SHA-256 of every file that it was made from."""

    @classmethod
    def read(cls, content: bytes, hashes: Mapping[str, str]) -> Self:
        """Raises ValueError for another format, if it was made from other files, or lacks one of their precisions."""
        try:
            with np.load(io.BytesIO(content)) as arrays:
                about = json.loads(str(arrays["about"]))
                outputs: dict[Precision, Outputs] = {
                    name: Outputs(arrays[f"{name}_vectors"], arrays[f"{name}_answers"])
                    for name in about["precisions"]
                }
            golden = cls(
                about["texts"],
                about["tokens"],
                [np.array(heads, np.int64) for heads in about["heads"]],
                outputs,
                about["files"],
            )
        except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(f"not golden vectors: {error}") from error
        for name, expected in golden.files.items():
            if hashes.get(name) != expected:
                raise ValueError(f"was made from another {name}: {REMEDY}")
        for precision, encoder in ENCODERS.items():
            if encoder in hashes and precision not in golden.outputs:
                raise ValueError(f"has nothing for {precision}, {encoder} does: {REMEDY}")
        return golden

    def to_bytes(self) -> bytes:
        about = {
            "texts": list(self.texts),
            "tokens": [list(tokens) for tokens in self.tokens],
            "heads": [heads.tolist() for heads in self.heads],
            "precisions": list(self.outputs),
            "files": dict(self.files),
        }
        arrays: dict[str, Any] = {"about": np.array(json.dumps(about))}
        for name, outputs in self.outputs.items():
            arrays[f"{name}_vectors"] = outputs.vectors
            arrays[f"{name}_answers"] = outputs.answers
        file = io.BytesIO()
        np.savez_compressed(file, **arrays)
        return file.getvalue()

    def moved_trees(self, parses: Sequence[Parse], card: Card) -> list[str]:
        """What has changed in the tokens, and in the trees if the model reads them, in words."""
        moved = []
        for text, tokens, heads, parse in zip(
            self.texts, self.tokens, self.heads, parses, strict=True
        ):
            if list(parse.tokens) != list(tokens):
                moved.append(f"the tokens of {text!r} are others")
            elif card.tree and not np.array_equal(parse.heads, heads):
                moved.append(f"the tree of {text!r} is another")
        return moved

    def moved_outputs(self, found: Outputs, precision: Precision) -> list[str]:
        """Vectors and answers beyond their tolerance, in words with the figure, the farthest first."""
        expected = self.outputs[precision]
        moved = []
        for kind, limit in (("vector", TOLERANCE), ("answer", ANSWER_TOLERANCE)):
            by_sentence = _differences(found, expected, kind)
            for i in np.argsort(-by_sentence, kind="stable").tolist():
                if not by_sentence[i] <= limit:  # written so that NaN counts as moved
                    figure = f"by {by_sentence[i]:.2g} (at most {limit:g})"
                    moved.append(f"the {kind} of {self.texts[i]!r} moved {figure}")
        return moved

    def deviation(self, found: Outputs, precision: Precision) -> float:
        """Largest change of a value of a vector."""
        return float(_differences(found, self.outputs[precision], "vector").max())


REMEDY = "copy the bundle again, or export it again"


def outputs(card: Card, vectors: Floats, logits: Floats | None) -> Outputs:
    """From what the encoder gives (N, W) and the head's logits (N, C)."""
    if logits is None:
        answers = np.zeros((len(vectors), 0))
    elif card.kind == "relatedness":
        answers = expected_score(logits)[:, None]
    else:
        answers = probabilities(card, logits)
    return Outputs(normalise(vectors[:, : card.dimension]), answers.astype(np.float32))


def sides(card: Card, vectors: Floats) -> list[Floats]:
    """Inputs of the head: each vector, or each and the next one."""
    return [np.roll(vectors, -side, axis=0) for side in range(len(head_inputs(card)))]


def _differences(found: Outputs, expected: Outputs, kind: str) -> Doubles:
    """(N,) the largest difference of each sentence's values; NaN where one is NaN."""
    a, b = (getattr(one, f"{kind}s").astype(np.float64) for one in (found, expected))
    if not a.shape[1]:
        return np.zeros(len(a))
    differences: Doubles = np.abs(a - b).max(axis=1)
    return differences

"""The service's results, and the arithmetic that turns logits and vectors into them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from heedful.runtime.bundles.card import Card
from heedful.runtime.errors import BadInput
from heedful.text.arrays import AnyFloats, Doubles, Floats, Ints
from heedful.text.parse import Parse

T = TypeVar("T")

TINY = np.finfo(np.float64).tiny
"""The smallest normal number."""
FewerBits = Literal["int8", "uint8", "binary", "ubinary"]
Precision = Literal["float32", FewerBits]
"""Types of a vector's values, by the names of sentence-transformers and Cohere."""


@dataclass(frozen=True, slots=True)
class Trust:
    """How far the answer to a text or a pair can be trusted."""

    confidence: float | None  # probability of the answered label; None without labels
    composed_words: float  # share of unlisted tokens; the name is the API's
    typical: float | None  # share of training sentences that lie as far out; None without an index


@dataclass(slots=True)
class Result(Generic[T]):
    """An answer, the card of the model that gave it, and its counts."""

    value: T
    card: Card
    inputs: int
    truncated: int  # inputs that were cut
    tokens: int
    unlisted: int  # tokens that the vocabulary does not list
    averaged: int = 0  # inputs that were too long and have the mean of their windows
    out_of_domain: int = 0  # inputs that are not English, as `is_out_of_domain` tells
    trust: Sequence[Trust] = ()  # one per input, if requested


@dataclass(frozen=True, slots=True)
class TokenizedText:
    """A text's tokens as the model reads them."""

    parse: Parse
    ids: Ints  # (L,)
    known: npt.NDArray[np.bool_]  # (L,)
    composed: npt.NDArray[np.bool_]  # (L,) unlisted, and composed from their spelling

    def fields(self) -> list[dict[str, Any]]:
        """The tokens, as POST /tokenize lists them."""
        parse = self.parse
        words = zip(parse.tokens, parse.starts, parse.stops, strict=True)
        columns = {
            "id": self.ids.tolist(),
            "text": [parse.text[start:stop] or token for token, start, stop in words],  # as typed
            "start": parse.starts,
            "stop": parse.stops,
            "head": parse.heads.tolist(),
            "dep": parse.deps,
            "known": self.known.tolist(),
            "composed": self.composed.tolist(),
        }
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def unit_rows(vectors: AnyFloats) -> Doubles:
    """Scale each row of (N, D) to length 1. A zero row stays zero."""
    wide = vectors.astype(np.float64)  # squares of the largest float32 values stay finite
    norms = np.sqrt(np.vecdot(wide, wide))
    wide /= np.maximum(norms, TINY)[:, None]
    return wide


def normalise(vectors: Floats) -> Floats:
    """`unit_rows` of float32."""
    return unit_rows(vectors).astype(np.float32)


def softmax(logits: npt.NDArray[Any]) -> Doubles:
    """exp(x) / sum exp(x) of each row (N, C), without overflow."""
    exponentials = np.exp(logits.astype(np.float64) - logits.max(axis=1, keepdims=True))
    probabilities: Doubles = exponentials / exponentials.sum(axis=1, keepdims=True)
    return probabilities


def log_softmax(logits: npt.NDArray[Any]) -> Doubles:
    """log(exp(x) / sum exp(x)) of each row (N, C), without overflow."""
    wide = logits.astype(np.float64)
    logs: Doubles = wide - np.logaddexp.reduce(wide, axis=1, keepdims=True)
    return logs


def sigmoid(logits: npt.NDArray[Any]) -> Doubles:
    """1 / (1 + exp(-x)) of each value, without overflow."""
    probabilities: Doubles = 0.5 * (1 + np.tanh(logits.astype(np.float64) / 2))
    return probabilities


def head_scores(card: Card, logits: npt.NDArray[Any]) -> Doubles:
    """Probabilities (N, C) of the labels, which add up to 1 unless a text may have several; or relatedness (N, 1)."""
    if card.kind == "relatedness":
        return expected_score(logits)[:, None]
    return sigmoid(logits) if card.multi_label else softmax(logits)


def chosen(card: Card, scores: npt.NDArray[Any]) -> list[str | None]:
    """The most probable label of each row (N, C) of probabilities, None where the model abstains."""
    least = card.abstain or 0.0
    return [
        card.labels[i] if row[i] >= least else None
        for row, i in zip(scores, scores.argmax(axis=1).tolist(), strict=True)
    ]


def cosines(first: AnyFloats, second: AnyFloats) -> Doubles:
    """Cosines (N, M) of the rows of (N, D) and (M, D); 0 where a row is zero."""
    cosines: Doubles = np.clip(unit_rows(first) @ unit_rows(second).T, -1.0, 1.0)  # rounding errors
    return cosines


def expected_score(logits: npt.NDArray[Any]) -> Doubles:
    """The expected score (N,) under logits (N, C) of the scores from 1 to C."""
    expected: Doubles = softmax(logits) @ np.arange(1.0, logits.shape[1] + 1)
    return expected


def check_precision(precision: object) -> None:
    """Raise BadInput for an unknown precision."""
    known = get_args(Precision)
    if precision not in known:
        raise BadInput(
            f"precision is {precision!r}: give one of {', '.join(known)}", param="precision"
        )


def as_precision(vectors: Floats, precision: Precision | Literal["float"]) -> npt.NDArray[Any]:
    """The vectors (N, D) in int8, uint8 (N, D), or a bit a value: binary (int8) and ubinary (uint8), (N, D / 8).

    int8 scales each vector by its largest value, so that it does not depend on the others: compare by cosine. uint8 is
    int8 + 128. A bit is 1 for a value above 0, and the first value is the highest bit: compare by Hamming distance.
    """
    if precision in ("float32", "float"):  # sentence-transformers' name, and Cohere's
        return vectors
    if precision in ("int8", "uint8"):
        largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0)
        scaled = np.rint(vectors * (127 / np.maximum(largest, np.finfo(np.float32).tiny)))
        shift, dtype = (0, np.int8) if precision == "int8" else (128, np.uint8)
        return np.asarray(scaled + shift, dtype)
    bits = np.packbits(vectors > 0, axis=1)
    return bits if precision == "ubinary" else np.asarray(bits.astype(np.int16) - 128, np.int8)

"""The graph of explain.onnx: what an encoder computes on its way to the sentence vector.

It holds no weights. They are inputs of the graph, and what is fed is stretches of encoder.onnx as it
was read; the encoder's session uses the word table there as well (`shared`), so that it is in memory
once. The session runs on the CPU whatever the encoder runs on. explain.int8.onnx is the same beside
encoder.int8.onnx: its matrices are inputs, its vectors its own.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime

from heedful.runtime.card import ENCODER, EXPLAIN, Card
from heedful.runtime.errors import BundleError
from heedful.runtime.graphs import Feeds, encoder_feeds
from heedful.runtime.session import CPU, session_options
from heedful.text.batch import Batch, collate
from heedful.text.pieces import Lexicon

Floats = npt.NDArray[np.float32]

MOST_TOKENS = 128
"""Tokens of a sentence that is explained."""
MOST_WEIGHTS = 2**18
"""What the maps of one sentence may hold together: about 3 MB of JSON."""
PRIORS = ("direction", "word", "dependency")
TYPES = {
    f"tensor({name})": np.dtype(numpy)
    for name, numpy in {
        "float": "f4",
        "float16": "f2",
        "int8": "i1",
        "uint8": "u1",
        "int32": "i4",
        "int64": "i8",
        "bool": "?",
    }.items()
}
"""ONNX Runtime's names of what weights are made of."""


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """Of B sentences. `pooling`, `maps` and `gate` by name, as in `models.sentence.Explanation`."""

    embedding: Floats  # (B, D)
    states: Floats  # (B, L, S)
    pooling: Mapping[str, Floats]  # (B, L) each
    maps: Mapping[str, Floats]  # (B, L, L) or (B, 1, L) each
    gate: Mapping[str, Floats]  # (B, L) each


class Explainer:
    """A session of explain.onnx, on one thread."""

    provider = CPU

    def __init__(self, files: Mapping[str, bytes], card: Card, file: str = EXPLAIN) -> None:
        """Open the session of `file`. Raises what ONNX Runtime raises, ValueError, KeyError for wrong metadata."""
        self._card = card
        self._session = onnxruntime.InferenceSession(
            files[file], session_options(threads=1), providers=[CPU]
        )
        inputs = {node.name: node for node in self._session.get_inputs()}
        self.priors = tuple(name for name in PRIORS if name in inputs)
        self._outputs = {node.name: node.shape for node in self._session.get_outputs()}
        metadata = self._session.get_modelmeta().custom_metadata_map
        about = {key: json.loads(value) for key, value in metadata.items()}
        self.names: Mapping[str, list[str]] = {
            kind: about.get(kind, []) for kind in ("pooling", "maps", "gate")
        }
        self._weights: dict[str, onnxruntime.OrtValue] = {}
        for name, offset in about["weights"].items():
            kind, shape = TYPES[inputs[name].type], inputs[name].shape
            stretch = np.frombuffer(files[ENCODER], kind, math.prod(shape), offset)
            value = onnxruntime.OrtValue.ortvalue_from_numpy(stretch.reshape(shape))
            self._weights[name] = value
        self.shared: Mapping[str, onnxruntime.OrtValue] = {
            tensor: self._weights[name] for tensor, name in about["shared"].items()
        }
        """Tensors of the encoder's graph, by their names there."""

    @property
    def most_tokens(self) -> int:
        """Of a sentence whose maps stay within MOST_WEIGHTS, and never more than MOST_TOKENS."""
        maps = len(self.names["maps"])
        if not maps:
            return MOST_TOKENS
        by_sentence = self._outputs["maps"][2] == 1
        most = MOST_WEIGHTS // maps if by_sentence else math.isqrt(MOST_WEIGHTS // maps)
        return min(MOST_TOKENS, most)

    def feeds(
        self, batch: Batch, switches: Mapping[str, bool] = {}, alpha: float | None = None
    ) -> Feeds:
        """The graph's inputs; a prior that `switches` leaves out is on, None is the card's alpha."""
        feeds = encoder_feeds(self._card, batch)
        if alpha is not None:
            feeds["alpha"] = np.array(alpha, np.float32)
        for name in self.priors:
            feeds[name] = np.array(switches.get(name, True))
        return feeds

    def run(self, feeds: Mapping[str, npt.NDArray[Any]]) -> Explanation:
        values = {
            name: onnxruntime.OrtValue.ortvalue_from_numpy(array) for name, array in feeds.items()
        }
        given = self._session.run_with_ort_values(None, {**values, **self._weights})
        found = {name: value.numpy() for name, value in zip(self._outputs, given, strict=True)}

        def named(kind: str) -> dict[str, Floats]:
            return {name: found[kind][:, i] for i, name in enumerate(self.names[kind])}

        return Explanation(
            found["embedding"], found["states"], named("pooling"), named("maps"), named("gate")
        )


def check_explainer(
    files: Mapping[str, bytes], card: Card, vocab: Lexicon, file: str = EXPLAIN
) -> None:
    """Raise BundleError unless `file` opens, has its outputs, and gives the vector's shape."""
    try:
        explainer = Explainer(files, card, file)
        batch = collate([vocab.sentence(["a"], np.arange(1))])
        found = explainer.run(explainer.feeds(batch))
    except Exception as error:  # ONNX Runtime's errors have no narrower common class
        raise BundleError(card.name, file, "it does not open, or does not run") from error
    if not found.pooling or found.embedding.shape != (1, card.dimension):
        raise BundleError(card.name, file, "gives no pooling, or not the card's dimension")

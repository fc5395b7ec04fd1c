"""The graph of explain.onnx: what an encoder computes on its way to the sentence vector.

Its weights are no copy: the file names stretches of encoder.onnx as external data, which ONNX
Runtime maps into memory. No optimisation is asked for, because folding constants would copy the
weights after all; it costs a quarter more time. It runs on the CPU whatever the encoder runs on.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime

from runtime.card import Card
from runtime.graphs import Feeds, encoder_feeds
from runtime.session import CPU, session_options
from text.batch import Batch

Floats = npt.NDArray[np.float32]

MOST_TOKENS = 128
"""Tokens of a sentence that is explained."""
MOST_CELLS = 2**18
"""Weights that the maps of one sentence may hold together: 2 MB of JSON."""
SWITCHES = ("direction", "word", "dependency")


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """Of B sentences. `pooling`, `maps` and `gate` by name, as in `models.sentence.Explanation`."""

    embedding: Floats  # (B, D)
    states: Floats  # (B, L, S)
    pooling: Mapping[str, Floats]  # (B, L) each
    maps: Mapping[str, Floats]  # (B, L, L) or (B, 1, L) each
    gate: Mapping[str, Floats]  # (B, L) each


class Explainer:
    """A session of explain.onnx."""

    provider = CPU

    def __init__(self, path: Path, card: Card) -> None:
        """Open the session. Raises what ONNX Runtime raises, and ValueError for wrong metadata."""
        options = session_options(threads=1)
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        self._card = card
        self._session = onnxruntime.InferenceSession(path, options, providers=[CPU])
        inputs = {node.name for node in self._session.get_inputs()}
        self.priors = tuple(name for name in SWITCHES if name in inputs)
        self._outputs = {node.name: node.shape for node in self._session.get_outputs()}
        metadata = self._session.get_modelmeta().custom_metadata_map
        self.names: Mapping[str, list[str]] = {k: json.loads(v) for k, v in metadata.items()}

    @property
    def most_tokens(self) -> int:
        """Of a sentence whose maps stay below MOST_CELLS, and never more than MOST_TOKENS."""
        maps = len(self.names.get("maps", ()))
        if not maps:
            return MOST_TOKENS
        rows = self._outputs["maps"][2]
        most = MOST_CELLS // maps if rows == 1 else math.isqrt(MOST_CELLS // maps)
        return min(MOST_TOKENS, most)

    def feeds(self, batch: Batch, switches: Mapping[str, bool], alpha: float | None) -> Feeds:
        """The graph's inputs; a prior that `switches` leaves out is on, None is the card's alpha."""
        feeds = encoder_feeds(self._card, batch)
        if alpha is not None:
            feeds["alpha"] = np.array(alpha, np.float32)
        for name in self.priors:
            feeds[name] = np.array(switches.get(name, True))
        return feeds

    def run(self, feeds: Mapping[str, npt.NDArray[Any]]) -> Explanation:
        found = dict(zip(self._outputs, self._session.run(None, dict(feeds)), strict=True))

        def named(kind: str) -> dict[str, Floats]:
            names = self.names.get(kind, ())
            return {name: found[kind][:, i] for i, name in enumerate(names)}

        return Explanation(
            found["embedding"], found["states"], named("pooling"), named("maps"), named("gate")
        )

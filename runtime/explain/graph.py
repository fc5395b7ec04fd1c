"""explain.onnx: the encoder's intermediate values, such as attention, and the sentence vector.

The graph holds no weights: they are inputs, fed from the bytes of encoder.onnx. The encoder's session uses the same
word table (`shared`), so that it is in memory once. The session always runs on the CPU. explain.int8.onnx does the same
for encoder.int8.onnx: matrices are inputs, and the graph holds the vectors.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
from pydantic import BaseModel, Json, ValidationError

from heedful.runtime.bundles.card import ENCODER, EXPLAIN, Card
from heedful.runtime.engine.graphs import Feeds, encoder_feeds, encoder_inputs
from heedful.runtime.errors import BundleError
from heedful.text.arrays import Floats
from heedful.text.batch import Batch, collate
from heedful.text.errors import GraphError
from heedful.text.graph import bounded_run, open_session
from heedful.text.pieces import Lexicon

MAX_TOKENS = 128
"""Length of the longest sentence that is explained, in tokens."""
MAX_WEIGHTS = 2**18
"""Limit of the weights in all maps of a sentence: about 3 MB of JSON."""
PRIORS = ("direction", "word", "dependency")
SCALE = "scale"
"""Optional input (B, L): a factor of each word vector, 1 by default (export.onnx)."""
TYPES = ("float", "float16", "int8", "uint8", "int32", "int64", "bool")
"""Types of weights by ONNX Runtime's names, which are numpy's, but for "float"."""
RANKS = {"embedding": 2, "states": 3, "pooling": 3, "maps": 4, "gate": 3}
"""Ranks of the outputs."""


class _Metadata(BaseModel):
    """The graph's metadata, JSON in each entry."""

    pooling: Json[list[str]] = []
    maps: Json[list[str]] = []
    gate: Json[list[str]] = []
    weights: Json[dict[str, int]]  # input -> its offset in encoder.onnx
    shared: Json[dict[str, str]]  # tensor of encoder.onnx -> input


@dataclass(frozen=True, slots=True, eq=False)
class ExplainOutputs:
    """Outputs for B sentences; names as in `models.sentence.Explanation`."""

    embedding: Floats  # (B, W), which begins with the sentence vector
    states: Floats  # (B, L, S)
    pooling: Mapping[str, Floats]  # (B, L) each
    maps: Mapping[str, Floats]  # (B, L, L) or (B, 1, L) each
    gate: Mapping[str, Floats]  # (B, L) each


class ExplainGraph:
    """A session of explain.onnx on one thread."""

    def __init__(self, files: Mapping[str, bytes], card: Card, file: str = EXPLAIN) -> None:
        """Open the session of `file`. Raises GraphError, also if the metadata do not fit the graph."""
        self._card = card
        self._session = open_session(files[file])
        inputs = {node.name: node for node in self._session.get_inputs()}
        self.priors = tuple(name for name in PRIORS if name in inputs)
        optional_inputs = self._session.get_overridable_initializers()
        self.scalable = SCALE in {node.name for node in optional_inputs}
        """Whether the word vectors can be scaled: integrated gradients need it."""
        self._outputs = {node.name: node.shape for node in self._session.get_outputs()}
        try:
            metadata = _Metadata.model_validate(self._session.get_modelmeta().custom_metadata_map)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            reason = f"its metadata: {'.'.join(map(str, first['loc']))}: {first['msg']}"
            raise GraphError(reason) from error
        self.names: Mapping[str, list[str]] = metadata.model_dump(exclude={"weights", "shared"})
        """The names of the entries on the second axis of an output."""
        expected = {*encoder_inputs(card), *self.priors, *metadata.weights}
        if different := set(inputs) ^ expected:
            raise GraphError(
                f"its inputs and metadata do not agree on {', '.join(sorted(different))}"
            )
        self._check_outputs()
        self._weights: dict[str, onnxruntime.OrtValue] = {
            name: onnxruntime.OrtValue.ortvalue_from_numpy(
                _weights(files[ENCODER], offset, inputs[name])
            )
            for name, offset in metadata.weights.items()
        }
        if missing := set(metadata.shared.values()) - set(self._weights):
            raise GraphError(f"its metadata: shared names no weights {', '.join(sorted(missing))}")
        self.shared: Mapping[str, onnxruntime.OrtValue] = {
            tensor: self._weights[name] for tensor, name in metadata.shared.items()
        }
        """Tensors of the encoder's graph by their names there."""

    def _check_outputs(self) -> None:
        """Raise GraphError unless the outputs match the metadata."""
        for name, rank in RANKS.items():
            names = self.names.get(name)
            if names == []:  # the graph does not have this output
                continue
            shape = self._outputs.get(name)
            if shape is None or len(shape) != rank:
                raise GraphError(f"has no output {name} of rank {rank}")
            if names and shape[1] != len(names):
                raise GraphError(f"its metadata: {name} names {len(names)} of {shape[1]}")

    @property
    def max_tokens(self) -> int:
        """Length of the longest sentence whose maps stay within MAX_WEIGHTS, at most MAX_TOKENS."""
        maps = len(self.names["maps"])
        if not maps or self._outputs["maps"][2] == 1:  # a weight for each token, not for each two
            return MAX_TOKENS
        return min(MAX_TOKENS, math.isqrt(MAX_WEIGHTS // maps))

    def feeds(
        self, batch: Batch, switches: Mapping[str, bool] = {}, alpha: float | None = None
    ) -> Feeds:
        """The graph's inputs. Priors are on but for those that `switches` turns off; None is the card's alpha."""
        feeds = encoder_feeds(self._card, batch, alpha)
        for name in self.priors:
            feeds[name] = np.array(switches.get(name, True))
        return feeds

    def run(self, feeds: Feeds, options: onnxruntime.RunOptions | None = None) -> ExplainOutputs:
        outputs = self._run(list(self._outputs), feeds, options)
        by_name = {
            kind: {name: outputs[kind][:, i] for i, name in enumerate(names)}
            for kind, names in self.names.items()
        }
        return ExplainOutputs(outputs["embedding"], outputs["states"], **by_name)

    def vectors(self, feeds: Feeds) -> Floats:
        """Only the sentence vectors (B, D): the graph's other outputs are not computed."""
        return self._run(["embedding"], feeds)["embedding"]

    def _run(
        self, outputs: list[str], feeds: Feeds, options: onnxruntime.RunOptions | None = None
    ) -> dict[str, npt.NDArray[Any]]:
        values = {
            name: onnxruntime.OrtValue.ortvalue_from_numpy(array) for name, array in feeds.items()
        }
        options = options or onnxruntime.RunOptions()
        options.only_execute_path_to_fetches = True
        results = self._session.run_with_ort_values(outputs, {**values, **self._weights}, options)
        return {name: value.numpy() for name, value in zip(outputs, results, strict=True)}


def _weights(content: bytes, offset: int, node: onnxruntime.NodeArg) -> npt.NDArray[Any]:
    """The values of an input, which are stored in encoder.onnx. Raises GraphError."""
    name = node.type.removeprefix("tensor(").removesuffix(")")
    if name not in TYPES or not all(isinstance(n, int) for n in node.shape):
        raise GraphError(f"the input {node.name} has no known type and shape")
    dtype, count = np.dtype("float32" if name == "float" else name), math.prod(node.shape)
    if not 0 <= offset <= len(content) - count * dtype.itemsize:
        raise GraphError(f"its metadata: {node.name} lies outside {ENCODER}")
    return np.frombuffer(content, dtype, count, offset).reshape(node.shape)


def open_checked(
    files: Mapping[str, bytes], card: Card, vocab: Lexicon, file: str = EXPLAIN
) -> ExplainGraph:
    """Raise BundleError unless `file` opens, runs, and gives a vector of the card's width."""
    batch = collate([vocab.sentence(["a"], np.arange(1))])
    try:
        graph = ExplainGraph(files, card, file)
        with bounded_run() as options:
            outputs = graph.run(graph.feeds(batch), options)
    except GraphError as error:
        raise BundleError(card.name, file, f"does not open, or does not run: {error}") from error
    if not outputs.pooling or outputs.embedding.shape != (1, card.width):
        raise BundleError(card.name, file, "gives no pooling, or not the card's dimension")
    return graph

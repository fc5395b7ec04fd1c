"""Open a bundle's closed word list: unlisted words are composed from their spelling, in every graph.

The table of listed words stays as it is: what is added stands behind it.
"""

import copy

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import TensorProto, helper
from torch import Tensor, nn

from heedful.export.graph_edits import edited, renamed
from heedful.export.onnx import graph
from heedful.export.weight_sharing import serialize
from heedful.export.weight_storage import round_weights
from heedful.export.word_scale import word_vectors
from heedful.models.composed_words import ComposedWords
from heedful.runtime.bundles.bundle import Bundle
from heedful.runtime.bundles.card import ENCODER
from heedful.text import composition
from heedful.text.arrays import Floats

IDS, FEATURES = "ids", "features"
CLAMPED, LISTED = "listed_ids", "listed_words"
PREFIX = "embedding.composed."
"""Begins the names of what is added, so that later steps still take it for a part of the word table."""


def listed_vectors(bundle: Bundle) -> Floats:
    """(V, D) the word table of a closed list, as the encoder reads it."""
    model = onnx.shape_inference.infer_shapes(onnx.load_from_string(bundle.files[ENCODER]))
    words = word_vectors(model)
    kept = onnx.utils.Extractor(model).extract_model([IDS, "lengths"], [words])
    session = onnxruntime.InferenceSession(serialize(kept), providers=["CPUExecutionProvider"])
    every = np.arange(len(bundle.vocab))[None]
    (vectors,) = session.run(None, {IDS: every, "lengths": np.array([every.size])})
    found: Floats = vectors[0]
    return found


def opened(bundle: Bundle, words: ComposedWords) -> dict[str, bytes]:
    """The files of a bundle with a closed word list that change when `words` compose the unlisted ones."""
    added = _composer(words)
    return edited(bundle, lambda model: _with_composed(model, added))


class _Fill(nn.Module):
    """ids (B, L), features (K, F), listed words (B, L, D) -> words (B, L, D)."""

    def __init__(self, words: ComposedWords) -> None:
        super().__init__()
        self.words = words

    def forward(self, ids: Tensor, features: Tensor, listed_words: Tensor) -> Tensor:
        return self.words.fill(ids, features, listed_words)


def _composer(words: ComposedWords) -> onnx.GraphProto:
    """The graph of `_Fill`, its feature table in 4 bits."""
    width = words.table.embedding_dim
    module = _Fill(copy.deepcopy(words))
    round_weights(module)
    example = {
        IDS: torch.tensor([[1, -1, -2, 1, 1]] * 3),
        FEATURES: torch.ones(2, composition.FEATURES, dtype=torch.long),
        LISTED: torch.ones(3, 5, width),
    }
    shapes = {IDS: {0: "B", 1: "L"}, FEATURES: {0: "K"}, LISTED: {0: "B", 1: "L"}}
    made = onnx.load_from_string(graph(module, example, shapes, ["words"]))
    return onnx.compose.add_prefix_graph(made.graph, PREFIX)


def _with_composed(model: onnx.ModelProto, added: onnx.GraphProto) -> onnx.ModelProto:
    """Look up id 0 where an id is negative, and let `added` fill those places in."""
    made = copy.deepcopy(model)
    words = word_vectors(model)
    names = {added.output[0].name: words}
    names |= {f"{PREFIX}{IDS}": IDS, f"{PREFIX}{FEATURES}": FEATURES, f"{PREFIX}{LISTED}": LISTED}
    zero = f"{PREFIX}zero"
    nodes = [
        helper.make_node("Constant", [], [zero], value_int=0),
        helper.make_node("Max", [IDS, zero], [CLAMPED]),
    ]
    for node in made.graph.node:
        if node.op_type == "Gather" and node.input[1] == IDS:
            node.input[1] = CLAMPED
        nodes.append(node)
        if words in node.output:
            node.output[:] = [LISTED if name == words else name for name in node.output]
            nodes += [renamed(one, names) for one in added.node]
    for part in (made.graph.node, made.graph.value_info):
        del part[:]  # intermediate shapes are inferred again
    made.graph.node.extend(nodes)
    made.graph.initializer.extend(added.initializer)
    made.graph.input.append(
        helper.make_tensor_value_info(FEATURES, TensorProto.INT64, ["K", composition.FEATURES])
    )
    onnx.checker.check_model(made, full_check=True)
    return made

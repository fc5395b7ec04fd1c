"""An explain graph whose word vectors can be scaled, token by token, on their way into the encoder.

The weights of the path that integrated gradients follow are an initializer that a request may replace:
1 by default, so that every other run computes the same bits.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, shape_inference

from heedful.export.errors import ExportError
from heedful.export.graph_edits import values_read
from heedful.export.weight_sharing import serialize
from heedful.runtime.explain.graph import SCALE

TABLES = ("embedding.", "model.embedding.")
"""Begins the names of the word tables, as the exporter calls the parameters of `SentenceEncoder.embedding`."""


def scalable(graph: bytes) -> bytes:
    """The graph with the optional input `scale` (B, L), by which each word vector is multiplied.

    A graph that has it, or that reads word pieces, stays as it is: a transformer mixes its pieces before
    they are words. Raises ExportError where the word vectors are not found.
    """
    model = onnx.load_from_string(graph)
    if {SCALE, "pieces"} & {value.name for value in model.graph.input}:
        return graph
    words = word_vectors(model)
    model.graph.input.append(helper.make_tensor_value_info(SCALE, TensorProto.FLOAT, ["SB", "SL"]))
    model.graph.initializer.append(numpy_helper.from_array(np.ones((1, 1), np.float32), SCALE))
    nodes = []
    for node in model.graph.node:
        nodes.append(node)
        if words in node.output:
            made = f"{words}_unscaled"
            node.output[list(node.output).index(words)] = made
            axis, column = f"{SCALE}_axis", f"{SCALE}_column"
            nodes += [
                helper.make_node("Constant", [], [axis], value_ints=[-1]),
                helper.make_node("Unsqueeze", [SCALE, axis], [column]),
                helper.make_node("Mul", [made, column], [words]),
            ]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    onnx.checker.check_model(model, full_check=True)
    return serialize(model)


def unscalable(model: onnx.ModelProto) -> onnx.ModelProto:
    """The graph without the input `scale`, in place: for a graph in which not only the encoder reads the words."""
    kept = [value for value in model.graph.input if value.name != SCALE]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    return model


def word_vectors(model: onnx.ModelProto) -> str:
    """The first tensor (B, L, D) that everything read from the word tables passes through. Raises ExportError."""
    graph = model.graph
    named = [(one.name, len(one.dims)) for one in graph.initializer]
    named += [(one.name, len(one.type.tensor_type.shape.dim)) for one in graph.input]
    derived = {name for name, rank in named if name.startswith(TABLES) and rank > 1}
    last = {name: place for place, node in enumerate(graph.node) for name in values_read(node)}
    inferred = shape_inference.infer_shapes(model).graph
    shapes = (*inferred.value_info, *inferred.output)
    ranks = {one.name: len(one.type.tensor_type.shape.dim) for one in shapes}
    for place, node in enumerate(graph.node):
        if node.op_type == "Shape" or not derived.intersection(node.input):
            continue
        derived.update(node.output)
        needed = {name for name in derived if last.get(name, -1) > place}
        if needed == {node.output[0]} and ranks.get(node.output[0]) == 3:
            return str(node.output[0])
    raise ExportError("the graph has no place where all word vectors pass")

"""Helpers for edits of graphs: one edit of all graphs of a bundle, renamed nodes, and constant values."""

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy.typing as npt
import onnx
from onnx import AttributeProto, helper, numpy_helper
from onnxscript import optimizer

from heedful.export.weight_sharing import (
    externalize_weights,
    inline_weights,
    restore_weights,
    serialize,
    share_weights,
)
from heedful.runtime.bundles.bundle import Bundle
from heedful.runtime.bundles.card import ENCODER, ENCODER_INT8, EXPLAIN, EXPLAIN_INT8
from heedful.text.graph import open_session


def edited(bundle: Bundle, edit: Callable[[onnx.ModelProto], onnx.ModelProto]) -> dict[str, bytes]:
    """The bundle's graph files after `edit`, which takes each graph with all its weights."""
    files, old = bundle.files, bundle.files[ENCODER]
    edited_files = {ENCODER: serialize(edit(onnx.load_from_string(old)))}
    if ENCODER_INT8 in files:
        model = edit(inline_weights(files[ENCODER_INT8], old))
        edited_files[ENCODER_INT8] = externalize_weights(model, edited_files[ENCODER], ENCODER)
    for name, vectors in ((EXPLAIN, True), (EXPLAIN_INT8, False)):
        if name in files:
            model = edit(restore_weights(files[name], old))
            edited_files[name] = share_weights(
                serialize(model), edited_files[ENCODER], vectors=vectors
            )
    return edited_files


def renamed(node: onnx.NodeProto, names: Mapping[str, str]) -> onnx.NodeProto:
    """A copy of the node with renamed inputs and outputs; `names` maps old to new names."""
    copied = copy.deepcopy(node)
    copied.input[:] = [names.get(name, name) for name in node.input]
    copied.output[:] = [names.get(name, name) for name in node.output]
    return copied


def values_read(node: onnx.NodeProto) -> set[str]:
    """Values that the node, with the graphs of its loops and branches, reads."""
    bodies = (attribute.g for attribute in node.attribute if attribute.type == AttributeProto.GRAPH)
    return set(node.input).union(*(values_read(inner) for body in bodies for inner in body.node))


def with_nodes(model: onnx.ModelProto, nodes: Iterable[onnx.NodeProto]) -> onnx.ModelProto:
    """Give the model these nodes, in place, and remove nodes that nothing reads."""
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    optimizer.remove_unused_nodes(model)
    onnx.checker.check_model(model, full_check=True)
    return model


def constants(model: onnx.ModelProto) -> dict[str, npt.NDArray[Any]]:
    """Initializers, and values computed from them alone, by name."""
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    names, nodes = set(tensors), []
    for node in model.graph.node:
        loops = any(attribute.type == AttributeProto.GRAPH for attribute in node.attribute)
        if node.input and not loops and names.issuperset(node.input):
            nodes.append(node)
            names.update(node.output)
    values = {name: numpy_helper.to_array(tensor) for name, tensor in tensors.items()}
    if not nodes:
        return values
    outputs = [name for node in nodes for name in node.output]
    read = {name for node in nodes for name in node.input}
    graph = helper.make_graph(
        nodes,
        "constants",
        [],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [tensor for name, tensor in tensors.items() if name in read],
    )
    folded = helper.make_model(
        graph, opset_imports=model.opset_import, ir_version=model.ir_version
    ).SerializeToString()
    return values | dict(zip(outputs, open_session(folded).run(None, {}), strict=True))

"""Store a bundle's int8 word table in 4 bits, in every graph."""

import copy

import onnx
import torch
from onnx import TensorProto, numpy_helper

from heedful.export.errors import ExportError
from heedful.export.graph_edits import edited, renamed
from heedful.export.onnx import graph
from heedful.export.weight_storage import Int4Table
from heedful.runtime.bundles.bundle import Bundle
from heedful.runtime.bundles.card import ENCODER

IDS = "ids"
PREFIX = "embedding."
"""Prefix of the table's tensor names, so that they are those of a graph exported with such a table."""


def repacked(bundle: Bundle) -> dict[str, bytes]:
    """The files of the bundle that change. Raises ExportError if its word table is not int8."""
    table = _table(onnx.load_from_string(bundle.files[ENCODER]), bundle.card.name)
    return edited(bundle, lambda model: _with_table(model, table))


def _table(model: onnx.ModelProto, name: str) -> onnx.GraphProto:
    """ids -> word vectors, in 4 bits. Raises ExportError."""
    tensors = {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}
    try:
        rows, scales = (tensors[node.input[0]] for node in _lookups(model))
    except ValueError as error:
        raise ExportError(f"{name}: its word table is not stored in int8") from error
    words = Int4Table(torch.from_numpy(rows * scales))
    example = {IDS: torch.ones(3, 5, dtype=torch.long)}
    made = onnx.load_from_string(graph(words, example, {IDS: {0: "B", 1: "L"}}, ["words"]))
    return onnx.compose.add_prefix_graph(made.graph, PREFIX)


def _lookups(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    """The Gather nodes of the rows and of their scales; [] if the table is stored otherwise."""
    kinds = {one.name: (one.data_type, len(one.dims)) for one in model.graph.initializer}
    gathers = [
        node for node in model.graph.node if node.op_type == "Gather" and node.input[1] == IDS
    ]
    wanted = ((TensorProto.INT8, 2), (TensorProto.FLOAT, 2))
    return [node for kind in wanted for node in gathers if kinds.get(node.input[0]) == kind]


def _with_table(model: onnx.ModelProto, table: onnx.GraphProto) -> onnx.ModelProto:
    """Replace the two lookups, the Cast and the Mul of an int8 table by `table`."""
    rows, scales = _lookups(model)
    (cast,) = (node for node in model.graph.node if node.input[:1] == rows.output[:1])
    (product,) = (node for node in model.graph.node if scales.output[0] in node.input)
    named = {table.input[0].name: IDS, table.output[0].name: product.output[0]}
    nodes = []
    for node in model.graph.node:
        if node == product:
            nodes += [renamed(one, named) for one in table.node]
        elif node not in (rows, scales, cast):
            nodes.append(node)
    gone = {rows.input[0], scales.input[0]}
    tensors = [one for one in model.graph.initializer if one.name not in gone]
    made = copy.deepcopy(model)
    for part in (made.graph.node, made.graph.initializer, made.graph.value_info):
        del part[:]  # intermediate shapes are inferred again
    made.graph.node.extend(nodes)
    made.graph.initializer.extend([*tensors, *table.initializer])
    onnx.checker.check_model(made, full_check=True)
    return made

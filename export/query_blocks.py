"""DiSAN's loop over reference tokens, several in a step, each step over the tokens that they may attend to.

A step costs 15 µs beside what it computes, and a block with a direction needs half of the pairs of tokens. The bits
stay: what is left out are zeros at the two ends of a sum.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from heedful.export.graph_edits import with_nodes

CELLS = 256
"""Pairs of tokens in a step, of all sentences, unless one reference token has more: 0.3 MB for 300 features."""
SUMMED = 128
"""Terms that ONNX Runtime's product adds up at once. Where there are more, a sum begins at a multiple of it."""
ATTEND = ["Add", "Tanh", "Mul", "Exp", "MatMul", "Clip", "Mul", "MatMul", "Div"]
"""The steps of `models.disan.attend`."""
CONSTANTS = {
    "zero": [0],
    "one": [1],
    "cells": [CELLS],
    "summed": [SUMMED],
    "last": [-1],
    "row": [-2],
    "within": [1, 2, 3],
    "before": [0] * 4,
    "behind": [0] * 3,
}


def in_blocks(model: onnx.ModelProto) -> None:
    """Let every loop over `models.disan.attend` take blocks of reference tokens, in place."""
    loops = {
        node.output[0]: f"block{i}_"
        for i, node in enumerate(model.graph.node)
        if node.op_type == "Scan" and [one.op_type for one in _body(node).node] == ATTEND
    }
    if not loops:
        return
    for name, value in CONSTANTS.items():
        tensor = numpy_helper.from_array(np.array(value, np.int64), f"block_{name}")
        model.graph.initializer.append(tensor)
    nodes: list[onnx.NodeProto] = []
    for node in model.graph.node:
        nodes += _blocks(node, loops[node.output[0]]) if node.output[0] in loops else [node]
    with_nodes(model, nodes)


def _body(node: onnx.NodeProto) -> onnx.GraphProto:
    body: onnx.GraphProto
    (body,) = (one.g for one in node.attribute if one.name == "body")
    return body


def _blocks(loop: onnx.NodeProto, p: str) -> list[onnx.NodeProto]:
    """The nodes in the loop's place; `p` begins the names of what they compute.

    Queries (L, B, 1, D) and where each may attend (L, B, 1, L) -> n blocks of c, the last one padded.
    """
    queries, allowed = loop.input
    node = helper.make_node
    return [
        node("Shape", [queries], [f"{p}L"], start=0, end=1),
        node("Shape", [queries], [f"{p}B"], start=1, end=2),
        node("Mul", [f"{p}L", f"{p}B"], [f"{p}tokens"]),
        node("Div", ["block_cells", f"{p}tokens"], [f"{p}fit"]),
        node("Min", [f"{p}fit", f"{p}L"], [f"{p}most"]),
        node("Max", [f"{p}most", "block_one"], [f"{p}c"]),
        node("Add", [f"{p}L", f"{p}c"], [f"{p}over"]),
        node("Sub", [f"{p}over", "block_one"], [f"{p}up"]),
        node("Div", [f"{p}up", f"{p}c"], [f"{p}n"]),
        node("Mul", [f"{p}n", f"{p}c"], [f"{p}padded"]),
        node("Sub", [f"{p}padded", f"{p}L"], [f"{p}padding"]),
        node("Concat", ["block_before", f"{p}padding", "block_behind"], [f"{p}pads"], axis=0),
        *_in_blocks(queries, f"{p}queries", p),
        *_in_blocks(allowed, f"{p}allowed", p),
        *_ranges(p),
        node(
            "Scan",
            [f"{p}queries", f"{p}allowed", f"{p}start", f"{p}stop"],
            [f"{p}found"],
            num_scan_inputs=4,
            body=_step(_body(loop), p),
        ),
        node("Shape", [f"{p}found"], [f"{p}row"], start=2),
        node("Concat", ["block_last", f"{p}row"], [f"{p}rows"], axis=0),
        node("Reshape", [f"{p}found", f"{p}rows"], [f"{p}joined"]),
        node("Slice", [f"{p}joined", "block_zero", f"{p}L", "block_zero"], list(loop.output)),
    ]


def _in_blocks(x: str, blocks: str, p: str) -> list[onnx.NodeProto]:
    """x (L, ..) -> (n, c, ..)."""
    node = helper.make_node
    return [
        node("Pad", [x, f"{p}pads"], [f"{blocks}_padded"]),
        node("Shape", [x], [f"{blocks}_row"], start=1),
        node("Concat", [f"{p}n", f"{p}c", f"{blocks}_row"], [f"{blocks}_shape"], axis=0),
        node("Reshape", [f"{blocks}_padded", f"{blocks}_shape"], [blocks]),
    ]


def _ranges(p: str) -> list[onnx.NodeProto]:
    """The first token that any reference token of a block may attend to, and the one behind the last: (n, 1) each."""
    node = helper.make_node
    return [
        node("ReduceMax", [f"{p}allowed", "block_within"], [f"{p}anyone"], keepdims=0),  # (n, L)
        node("ArgMax", [f"{p}anyone"], [f"{p}first"], axis=1),
        node("ArgMax", [f"{p}anyone"], [f"{p}final"], axis=1, select_last_index=1),
        node("Add", [f"{p}final", "block_one"], [f"{p}stop"]),
        node("Mod", [f"{p}first", "block_summed"], [f"{p}beyond"]),
        node("Greater", [f"{p}L", "block_summed"], [f"{p}long"]),
        node("Cast", [f"{p}long"], [f"{p}aligned"], to=TensorProto.INT64),
        node("Mul", [f"{p}beyond", f"{p}aligned"], [f"{p}earlier"]),
        node("Sub", [f"{p}first", f"{p}earlier"], [f"{p}start"]),
    ]


def _step(body: onnx.GraphProto, p: str) -> onnx.GraphProto:
    """`models.disan.attend` for a block: query (c, B, 1, D), allowed (c, B, 1, L) -> (c, B, 1, D).

    The sums are computed as two equal rows, for the reason that `export.int8` gives.
    """
    add, _, scale, power, _, clip, weigh, _, _ = body.node
    (keys,) = set(add.input) - {body.input[0].name}
    (values,) = set(weigh.input) - {power.output[0]}
    node = helper.make_node
    names = ["query", "allowed", "start", "stop"]
    kinds = [TensorProto.FLOAT] * 2 + [TensorProto.INT64] * 2
    query, allowed, start, stop = (f"{p}one_{name}" for name in names)
    nodes = [
        node("Slice", [keys, start, stop, "block_one"], [f"{p}keys"]),
        node("Slice", [values, start, stop, "block_one"], [f"{p}values"]),
        node("Slice", [allowed, start, stop, "block_last"], [f"{p}attended"]),
        node("Concat", [f"{p}attended"] * 2, [f"{p}twice"], axis=-2),
        node("Add", [f"{p}keys", query], [f"{p}sum"]),
        node("Tanh", [f"{p}sum"], [f"{p}bounded"]),
        node("Mul", [f"{p}bounded", scale.input[1]], [f"{p}scores"]),
        node("Exp", [f"{p}scores"], [f"{p}powers"]),
        node("MatMul", [f"{p}twice", f"{p}powers"], [f"{p}totals"]),
        node("Clip", [f"{p}totals", *clip.input[1:]], [f"{p}clipped"]),
        node("Mul", [f"{p}powers", f"{p}values"], [f"{p}weighed"]),
        node("MatMul", [f"{p}twice", f"{p}weighed"], [f"{p}sums"]),
        node("Div", [f"{p}sums", f"{p}clipped"], [f"{p}both"]),
        node("Slice", [f"{p}both", "block_zero", "block_one", "block_row"], [f"{p}attention"]),
    ]
    inputs = [
        helper.make_tensor_value_info(name, kind, None)
        for name, kind in zip((query, allowed, start, stop), kinds, strict=True)
    ]
    output = helper.make_tensor_value_info(f"{p}attention", TensorProto.FLOAT, None)
    return helper.make_graph(nodes, f"{p}step", inputs, [output])

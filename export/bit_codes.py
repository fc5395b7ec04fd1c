"""A table in 4 bits, decoded by shifting bits.

torch exports `rows % 16` and `rows // 16` as divisions of 32-bit numbers, whose signs are checked: sixteen steps on
four times the bytes. A code is a byte's lower or upper half, and the values are the same.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from heedful.export.graph_edits import reader, with_nodes

LOW_BITS, SHIFT = "codes_low_bits", "codes_shift"


def shifted_codes(model: onnx.ModelProto) -> None:
    """Decode the rows of every table in 4 bits (`export.weight_storage.Int4Table`) by their bits, in place."""
    graph = model.graph
    bytes_ = {one.name for one in graph.initializer if one.data_type == TensorProto.UINT8}
    lookups = [one for one in graph.node if one.op_type == "Gather" and one.input[0] in bytes_]
    stacks = {}
    for lookup in lookups:
        cast = reader(graph, lookup.output[0], "Cast")
        remainder = reader(graph, cast.output[0], "Mod")
        aside = reader(graph, remainder.output[0], "Unsqueeze")
        stack = reader(graph, aside.output[0], "Concat")
        stacks[stack.output[0]] = lookup.output[0], aside.input[1]
    if not stacks:
        return
    for name, value in ((LOW_BITS, 15), (SHIFT, 4)):
        graph.initializer.append(numpy_helper.from_array(np.array(value, np.uint8), name))
    nodes = []
    for node in graph.node:
        if node.output[0] in stacks:
            nodes += _halves(node.output[0], *stacks[node.output[0]])
        else:
            nodes.append(node)
    known = [
        value for value in graph.value_info if value.type.tensor_type.elem_type != TensorProto.INT32
    ]
    del graph.value_info[:]  # the codes are bytes now
    graph.value_info.extend(known)
    with_nodes(model, nodes)


def _halves(codes: str, rows: str, last: str) -> list[onnx.NodeProto]:
    """rows (.., N) of bytes -> codes (.., N, 2), the lower half first; `last` names the new axis."""
    halves = [f"{codes}_{half}" for half in ("low", "high")]
    apart = [f"{half}_apart" for half in halves]
    return [
        helper.make_node("BitwiseAnd", [rows, LOW_BITS], halves[:1]),
        helper.make_node("BitShift", [rows, SHIFT], halves[1:], direction="RIGHT"),
        *(
            helper.make_node("Unsqueeze", [half, last], [name])
            for half, name in zip(halves, apart, strict=True)
        ),
        helper.make_node("Concat", apart, [codes], axis=-1),
    ]

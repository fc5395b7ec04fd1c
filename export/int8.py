"""Products with constant matrices in integers, where a row's result depends on that row alone.

Each row that a product reads is divided by its largest value / 127 and rounded to bytes; each column
of the matrix is stored as bytes with one scale. Integer sums are exact in any order. One scale for a
whole tensor, as in ONNX's DynamicQuantizeLinear, would let a sentence's vector depend on the others in
its batch.

Rounding can turn a last-bit difference in a product's input into a whole step: 1e-3 in the sentence
vector. So a product is computed in integers only if its input has the same bits whatever the batch and the padding:
`export.batch_invariance` finds these.
"""

import copy
import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

from heedful.export.graph_edits import constants, with_nodes
from heedful.export.operators import PRODUCT, call, call_operators
from heedful.text.arrays import Floats

LARGEST = 63
"""A matrix byte uses 7 bits: processors without VNNI add two products in 16 bits, which 8 would overflow."""
ZERO = 128
"""Zero point of a row's bytes: only unsigned times signed bytes are fast."""
RESTORED = "_float"
"""Suffix of the name of a matrix that a graph computes from its bytes."""
CONTRIB = "com.microsoft"
"""The domain of ONNX Runtime's own operators."""


@dataclass(frozen=True, slots=True)
class Product:
    """A MatMul of a computed value, `input`, with a constant matrix; its names in the graph and the matrix's `key`."""

    output: str
    input: str
    matrix: str
    key: str


def key(matrix: npt.NDArray[Any]) -> str:
    """A hash of the values: encoder.onnx and explain.onnx name the same matrix differently."""
    content = np.ascontiguousarray(matrix)
    return hashlib.sha256(str(content.shape).encode() + content.tobytes()).hexdigest()


def products(model: onnx.ModelProto) -> list[Product]:
    """Every product outside loop bodies, which have few rows at a time."""
    return _products(model, constants(model))


def float_graph(model: onnx.ModelProto, keys: Collection[str]) -> onnx.ModelProto:
    """The graph with the matrices of the products of these `keys` stored as bytes; it computes in float32."""
    converted = copy.deepcopy(model)
    stored = _store(converted, keys)
    nodes = []
    for name in dict.fromkeys(stored.values()):
        nodes += [
            helper.make_node("Cast", [f"{name}_bytes"], [f"{name}_cast"], to=TensorProto.FLOAT),
            helper.make_node("Mul", [f"{name}_cast", f"{name}_scales"], [name + RESTORED]),
        ]
    for node in converted.graph.node:
        if node.output[0] in stored:
            node.input[1] = stored[node.output[0]] + RESTORED
        nodes.append(node)
    return with_nodes(converted, nodes)


def int8_graph(model: onnx.ModelProto, keys: Collection[str]) -> onnx.ModelProto:
    """The graph with the products of these `keys` in integers; tensors are named as in `float_graph`.

    Other steps are calls of `export.operators`.
    """
    converted = copy.deepcopy(model)
    stored = _store(converted, keys)
    converted.opset_import.append(helper.make_opsetid(CONTRIB, 1))
    for name, value in {
        "int8_one": np.float32(1),
        "int8_none": np.float32(0),
        "int8_zero": np.uint8(ZERO),
        "int8_first": np.array([0]),
        "int8_second": np.array([1]),
    }.items():
        converted.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    nodes: list[onnx.NodeProto] = []
    rounded: set[str] = set()
    for node in converted.graph.node:
        if node.output[0] not in stored:
            nodes.append(node)
            continue
        value, output, matrix = node.input[0], node.output[0], stored[node.output[0]]
        if value not in rounded:  # once, however many products read it
            rounded.add(value)
            nodes.append(call("RoundRows", [value], [f"{value}_bytes", f"{value}_scales"]))
        columns = f"{output}_columns"
        factors = [f"{value}_bytes", f"{matrix}_bytes", "int8_one", f"{matrix}_scales", "int8_zero"]
        nodes += [
            helper.make_node(PRODUCT, factors, [columns], domain=CONTRIB),
            helper.make_node("Mul", [columns, f"{value}_scales"], [output]),
        ]
    del converted.graph.node[:]
    converted.graph.node.extend(nodes)
    call_operators(converted)
    for node in converted.graph.node:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                _double_rows(attribute.g)
    steps = [_exact_elu(node) if node.op_type == "Elu" else [node] for node in converted.graph.node]
    return with_nodes(converted, chain.from_iterable(steps))


def _products(model: onnx.ModelProto, known: Mapping[str, Floats]) -> list[Product]:
    products = []
    for node in model.graph.node:
        if node.op_type != "MatMul" or node.input[0] in known:
            continue
        matrix = known.get(node.input[1])
        if matrix is not None and matrix.ndim == 2 and matrix.dtype == np.float32:
            products.append(Product(node.output[0], node.input[0], node.input[1], key(matrix)))
    return products


def _store(model: onnx.ModelProto, keys: Collection[str]) -> dict[str, str]:
    """Add the products' matrices as bytes and scales; returns product's output -> name of its matrix."""
    known = constants(model)
    chosen = [product for product in _products(model, known) if product.key in keys]
    for name in sorted({product.matrix for product in chosen}):
        columns, scales = int8_columns(known[name])
        for part, value in (("bytes", columns), ("scales", scales)):
            model.graph.initializer.append(numpy_helper.from_array(value, f"{name}_{part}"))
    return {product.output: product.matrix for product in chosen}


def int8_columns(matrix: Floats, largest: int = LARGEST) -> tuple[npt.NDArray[np.int8], Floats]:
    """(K, N) -> bytes (K, N) and scales (N,); each column's largest byte is `largest`."""
    scales = np.abs(matrix).max(axis=0) / np.float32(largest)
    scales[scales == 0] = 1  # an empty column stays empty
    return np.round(matrix / scales).astype(np.int8), scales.astype(np.float32)


def _double_rows(body: onnx.GraphProto) -> None:
    """In a loop's body, compute one-row products, (B, 1, L) with (B, L, D), as two equal rows.

    For one row ONNX Runtime adds four terms at a time, so the number of zeros that pad a sentence
    changes the last bit of its sum. For more rows it adds the terms one by one.
    """
    one_row = {value.name for value in body.input if _is_row(value)}
    nodes = []
    for node in body.node:
        if node.op_type != "MatMul" or node.input[0] not in one_row:
            nodes.append(node)
            continue
        name = node.output[0]
        twice, both = f"{name}_twice", f"{name}_both"
        nodes += [
            helper.make_node("Concat", [node.input[0]] * 2, [twice], axis=1),
            helper.make_node("MatMul", [twice, node.input[1]], [both]),
            helper.make_node("Slice", [both, "int8_first", "int8_second", "int8_second"], [name]),
        ]
    del body.node[:]
    body.node.extend(nodes)


def _exact_elu(node: onnx.NodeProto) -> list[onnx.NodeProto]:
    """Elu as max(x, 0) + alpha (exp(min(x, 0)) - 1), with alpha 1.

    ONNX Runtime's Elu uses one exponential for full registers and another for the remainder of a
    thread's rows, and the batch decides which values those are. Its Exp has only one.
    """
    if any(attribute.name == "alpha" and attribute.f != 1 for attribute in node.attribute):
        return [node]
    (x,), (y,) = node.input, node.output
    above, below, power, less = (f"{y}_elu_{part}" for part in ("above", "below", "power", "less"))
    return [
        helper.make_node("Max", [x, "int8_none"], [above]),
        helper.make_node("Min", [x, "int8_none"], [below]),
        helper.make_node("Exp", [below], [power]),
        helper.make_node("Sub", [power, "int8_one"], [less]),
        helper.make_node("Add", [above, less], [y]),
    ]


def _is_row(value: onnx.ValueInfoProto) -> bool:
    """Whether its shape is declared as (B, 1, L)."""
    dims = value.type.tensor_type.shape.dim
    return len(dims) == 3 and dims[1].dim_value == 1

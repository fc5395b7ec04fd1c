"""The arc parser as an ONNX graph, operator by operator: word vectors in bytes -> heads and relations.

An int8 graph multiplies bytes with bytes. The inputs of products are rounded by steps that are measured once, when the
graph is made, so that a word's row depends on no other row of the batch; sums of integers are exact. Inputs are rounded
before windows are joined, where padding is set to zero too.

B texts of at most L words: `words` (B, L, D) bytes, ZERO after a text's end; `inside` (B, L, 1) bool;
`outside` (B, 1, L) float, 0 for a word and FAR for padding; `itself` (L, L) float, FAR on the diagonal;
`cos` and `sin` (L, 2 rotary) float; `first` (B, 1): the number of each text's first position, L b.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from heedful.export.int8 import int8_columns
from heedful.text.arrays import Floats
from heedful.text.hashed_words import ZERO
from tools.parser.model import DILATIONS, ArcParser

Steps = Mapping[str, float]
"""The value of a byte's step, by the name of the rounded value."""
OPSET = 20
CONTRIB = "com.microsoft"
OUTPUTS = ("heads", "relations", "scores", "dependents", "governors")


class _Graph:
    """The nodes and constants of a graph that is being built. Methods return the name of the value that they add."""

    def __init__(self, steps: Steps | None) -> None:
        self.steps = steps
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, onnx.TensorProto] = {}

    def add(self, operator: str, inputs: Sequence[str], name: str, **attributes: Any) -> str:
        domain = CONTRIB if operator == "MatMulIntegerToFloat" else ""
        self.nodes.append(
            helper.make_node(operator, inputs, [name], name=name, domain=domain, **attributes)
        )
        return name

    def constant(self, name: str, value: npt.ArrayLike) -> str:
        self.constants[name] = numpy_helper.from_array(np.asarray(value), name)
        return name

    def rounded(self, x: str, name: str, *, signed: bool = True) -> str:
        """x in bytes, by the step of `name`; x itself in a graph of floats."""
        if self.steps is None:
            return x
        step = self.constant(f"{name}_step", np.float32(self.steps[name]))
        zero = self.constant(f"{name}_zero", np.uint8(ZERO if signed else 0))
        return self.add("QuantizeLinear", [x, step, zero], f"{name}_bytes")

    def product(self, x: str, name: str, matrix: Floats, bias: Floats, rounding: str) -> str:
        """x `matrix` + `bias`, where x was `rounded` under the name `rounding`."""
        offset = self.constant(f"{name}_bias", bias.astype(np.float32))
        if self.steps is None:
            product = self.add(
                "MatMul", [x, self.constant(f"{name}_matrix", matrix)], f"{name}_product"
            )
            return self.add("Add", [product, offset], name)
        columns, scales = int8_columns(matrix)
        return self.add(
            "MatMulIntegerToFloat",
            [
                *(x, self.constant(f"{name}_matrix", columns)),
                *(f"{rounding}_step", self.constant(f"{name}_scales", scales)),
                *(f"{rounding}_zero", "", offset),
            ],
            name,
        )

    def split(self, x: str, widths: Sequence[int], names: Sequence[str]) -> None:
        sizes = self.constant(f"{x}_widths", np.array(widths, np.int64))
        self.nodes.append(helper.make_node("Split", [x, sizes], names, name=f"{x}_split", axis=-1))


def arc_graph(model: ArcParser, word_step: float, steps: Steps | None) -> bytes:
    """The graph of `model`, whose word vectors come in bytes of `word_step`; in floats without `steps`."""
    graph = _Graph(None if steps is None else {**steps, "window0": word_step})
    weights = {name: value.detach().float().numpy() for name, value in model.state_dict().items()}
    graph.constant("none", np.array([0], np.int64))
    x, read = _words(graph, word_step)
    for i, dilation in enumerate(DILATIONS):
        x = _window(graph, x, read, i, dilation, weights)
        if i + 1 < len(DILATIONS):
            read = _inside(graph, graph.rounded(x, f"window{i + 1}"), f"window{i + 1}")
    read = graph.rounded(x, "words_read")
    _arcs(graph, read, model, weights)
    _relations(graph, read, model, weights)
    return _finish(graph, model.words.norm.normalized_shape[0])


def _words(graph: _Graph, step: float) -> tuple[str, str]:
    """The names of the word vectors in floats, and of the input of the first window."""
    scale = graph.constant("window0_step", np.float32(step))
    zero = graph.constant("window0_zero", np.uint8(ZERO))
    x = graph.add("DequantizeLinear", ["words", scale, zero], "x0")
    return x, x if graph.steps is None else "words"


def _inside(graph: _Graph, x: str, name: str) -> str:
    """x with 0, or its byte, after a text's end."""
    empty = np.float32(0) if graph.steps is None else np.uint8(ZERO)
    return graph.add(
        "Where", ["inside", x, graph.constant(f"{name}_empty", empty)], f"{name}_inside"
    )


def _window(graph: _Graph, x: str, read: str, i: int, d: int, weights: Mapping[str, Floats]) -> str:
    name = f"window{i}"
    pads = graph.constant(f"{name}_pads", np.array([0, d, 0, 0, d, 0], np.int64))
    empty = np.float32(0) if graph.steps is None else np.uint8(ZERO)
    wide = graph.add("Pad", [read, pads, graph.constant(f"{name}_edge", empty)], f"{name}_wide")
    axis = graph.constant("window_axis", np.array([1], np.int64))
    begin = graph.constant(f"{name}_begin", np.array([2 * d], np.int64))
    end = graph.constant(f"{name}_end", np.array([-2 * d], np.int64))
    last = graph.constant("window_last", np.array([2**31], np.int64))
    left = graph.add("Slice", [wide, "none", end, axis], f"{name}_left")
    right = graph.add("Slice", [wide, begin, last, axis], f"{name}_right")
    around = graph.add("Concat", [left, read, right], f"{name}_around", axis=2)
    matrix, bias = weights[f"windows.{i}.mix.weight"].T, weights[f"windows.{i}.mix.bias"]
    mixed = graph.product(around, f"{name}_mixed", matrix, bias, name)
    positive = graph.add("Relu", [mixed], f"{name}_positive")
    gain = graph.constant(f"{name}_gain", weights[f"windows.{i}.norm.weight"])
    shift = graph.constant(f"{name}_shift", weights[f"windows.{i}.norm.bias"])
    normed = graph.add(
        "LayerNormalization", [positive, gain, shift], f"{name}_normed", axis=-1, epsilon=1e-5
    )
    return graph.add("Add", [x, normed], f"x{i + 1}")


def _arcs(graph: _Graph, read: str, model: ArcParser, weights: Mapping[str, Floats]) -> None:
    """`scores` (B, L, 1 + L) and `heads` (B, L), 0 for the root.

    x rotated by an angle t is x cos t + x' sin t, where x' is x rotated by a quarter turn: both are columns of one
    product.
    """
    arc, pairs = model.arc, model.rotary // 2
    size = (model.arc + model.rotary) ** -0.5
    dependent = np.vstack([weights["dependent.weight"].T, weights["dependent.bias"]]) * size
    governor = np.vstack([weights["governor.weight"].T, np.zeros(arc + 2 * pairs)])
    plain, quarter = [], []
    for rotated in (dependent[:, arc:], governor[:, arc:]):
        plain.append(rotated)
        quarter.append(np.hstack([-rotated[:, pairs:], rotated[:, :pairs]]))
    prior = np.vstack([weights["prior.weight"].T, [[0.0]]])
    root = np.vstack([weights["root.weight"].T, weights["root.bias"][None]])
    parts = [dependent[:, :arc], governor[:, :arc], *plain, *quarter, prior, root]
    matrix = np.hstack(parts).astype(np.float32)
    graph.product(read, "arcs", matrix[:-1], matrix[-1], "words_read")
    names = ["as_dependent", "as_governor", "plain", "quarter", "prior", "root"]
    graph.split("arcs", [arc, arc, 4 * pairs, 4 * pairs, 1, 1], names)
    graph.add("Mul", ["plain", "cos"], "plain_turned")
    graph.add("Mul", ["quarter", "sin"], "quarter_turned")
    graph.add("Add", ["plain_turned", "quarter_turned"], "turned")
    graph.split("turned", [2 * pairs, 2 * pairs], ["turned_dependent", "turned_governor"])
    graph.add("Concat", ["as_dependent", "turned_dependent"], "all_dependent", axis=2)
    graph.add("Concat", ["as_governor", "turned_governor"], "all_governor", axis=2)
    graph.add("Transpose", ["all_governor"], "governor_columns", perm=[0, 2, 1])
    graph.add("MatMul", ["all_dependent", "governor_columns"], "by_content")
    graph.add("Transpose", ["prior"], "prior_row", perm=[0, 2, 1])
    graph.add("Add", ["prior_row", "outside"], "by_governor")
    graph.add("Add", ["by_content", "by_governor"], "of_words")
    graph.add("Add", ["of_words", "itself"], "of_others")
    graph.add("Concat", ["root", "of_others"], "scores", axis=2)
    graph.add("ArgMax", ["scores"], "heads", axis=2, keepdims=0)


def _relations(graph: _Graph, read: str, model: ArcParser, weights: Mapping[str, Floats]) -> None:
    """`relations` (B, L) of words to their `heads`; a root's means nothing."""
    width = model.relation_dependent.out_features
    matrix = np.hstack([weights[f"relation_{part}.weight"].T for part in ("dependent", "governor")])
    bias = np.concatenate([weights["relation_dependent.bias"], np.zeros(width, np.float32)])
    graph.product(read, "both", matrix, bias, "words_read")
    graph.split("both", [width, width], ["dependents", "governors"])
    graph.constant("one", np.array(1, np.int64))
    graph.constant("zero", np.array(0, np.int64))
    graph.add("Sub", ["heads", "one"], "words_above")
    graph.add("Max", ["words_above", "zero"], "above")
    graph.add("Add", ["above", "first"], "numbered")
    graph.add("Reshape", ["governors", graph.constant("rows", np.array([-1, width]))], "all_rows")
    graph.add("Gather", ["all_rows", "numbered"], "chosen", axis=0)
    graph.add("Add", ["dependents", "chosen"], "pairs")
    positive = graph.add("Relu", ["pairs"], "positive_pairs")
    rounded = graph.rounded(positive, "pairs_read", signed=False)
    matrix, bias = weights["relation_out.weight"].T, weights["relation_out.bias"]
    graph.product(rounded, "relation_scores", matrix, bias, "pairs_read")
    graph.add("ArgMax", ["relation_scores"], "relations", axis=2, keepdims=0)


def _finish(graph: _Graph, width: int) -> bytes:
    inputs: dict[str, tuple[int, list[str | int | None]]] = {
        "words": (TensorProto.UINT8, ["B", "L", width]),
        "inside": (TensorProto.BOOL, ["B", "L", 1]),
        "outside": (TensorProto.FLOAT, ["B", 1, "L"]),
        "itself": (TensorProto.FLOAT, ["L", "L"]),
        "cos": (TensorProto.FLOAT, ["L", None]),
        "sin": (TensorProto.FLOAT, ["L", None]),
        "first": (TensorProto.INT64, ["B", 1]),
    }
    kinds = dict.fromkeys(OUTPUTS, TensorProto.FLOAT) | dict.fromkeys(
        OUTPUTS[:2], TensorProto.INT64
    )
    onnx_graph = helper.make_graph(
        graph.nodes,
        "arc_parser",
        [helper.make_tensor_value_info(name, *info) for name, info in inputs.items()],
        [
            helper.make_tensor_value_info(
                name, kind, ["B", "L"] if kind == TensorProto.INT64 else ["B", "L", None]
            )
            for name, kind in kinds.items()
        ],
        list(graph.constants.values()),
    )
    imports = [helper.make_opsetid("", OPSET), helper.make_opsetid(CONTRIB, 1)]
    model = helper.make_model(onnx_graph, opset_imports=imports, ir_version=10)
    content: bytes = model.SerializeToString()
    return content

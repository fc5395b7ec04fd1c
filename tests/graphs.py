"""The graphs of the built bundles, in ONNX's textual form (https://onnx.ai/onnx/repo-docs/Syntax.html)."""

import json
from typing import Any

import numpy as np
import onnx
import onnx.parser
from onnx import helper, numpy_helper

from heedful.runtime.explain.graph import SCALE
from heedful.text.arrays import Floats
from heedful.text.kinds import Kind

OF_WORDS = "words = Gather (table, ids)"
OF_PIECES = """
    identities = Gather (table, ids)
    width = Shape <start: int = 1, end: int = 2> (ids)
    S = Squeeze (width)
    span = Range (zero, S, one)
    placed = Gather (places, span)
    vectors = Add (identities, placed)
    summed_pieces = CumSum (pieces, one)
    ends = Add (summed_pieces, one)
    starts = Sub (ends, pieces)
    ends3 = Unsqueeze (ends, last)
    starts3 = Unsqueeze (starts, last)
    behind = GreaterOrEqual (span, starts3)
    before = Less (span, ends3)
    own = And (behind, before)
    own_float = Cast <to: int = 1> (own)
    word_sums = MatMul (own_float, vectors)
    counted = Max (pieces, one)
    counted3 = Unsqueeze (counted, last)
    counts_float = Cast <to: int = 1> (counted3)
    words = Div (word_sums, counts_float)
"""
"""(B, S) ids and (B, L) pieces of each word -> words (B, L, D)."""
SCALED = """
    unscaled = Gather (table, ids)
    scale3 = Unsqueeze (scale, last)
    words = Mul (unscaled, scale3)
"""
GOVERNED = """
    index = Unsqueeze (heads, last)
    governors = GatherND <batch_dims: int = 1> (words, index)
    scaled = Mul (governors, weight)
    summed = Add (words, scaled)
    hidden = Tanh (summed)
"""
MEAN = """
    length = Shape <start: int = 1, end: int = 2> (shaped)
    L = Squeeze (length)
    positions = Range (zero, L, one)
    column = Unsqueeze (lengths, last)
    inside = Less (positions, column)
    mask = Cast <to: int = 1> (inside)
    mask3 = Unsqueeze (mask, last)
    masked = Mul (hidden, mask3)
    total = ReduceSum <keepdims: int = 0> (masked, first)
    count = Cast <to: int = 1> (column)
    embedding = Div (total, count)
"""
EXPLAINED = """
    states = Identity (hidden)
    turned = Transpose <perm: ints = [0, 2, 1]> (hidden)
    products = MatMul (hidden, turned)
    weights = Softmax (products)
    maps = Unsqueeze (weights, first)
    sums = ReduceSum <keepdims: int = 0> (hidden, last)
    shares = Softmax (sums)
    means = Div (mask, count)
    shares3 = Unsqueeze (shares, first)
    means3 = Unsqueeze (means, first)
    pooling = Concat <axis: int = 1> (shares3, means3)
    opened = Sigmoid (sums)
    gate = Unsqueeze (opened, first)
"""
NAMES = {"pooling": ["sums", "mean"], "maps": ["products"], "gate": ["gate"]}


def encoder_graph(table: Floats, *, tree: bool, places: Floats | None = None) -> bytes:
    """encoder.onnx: mean over tokens of tanh(table[id] + alpha * table[id of the governor]).

    With `places` an id is a piece: a word is the mean of its pieces' table[id] + places[position].
    """
    body = OF_WORDS if places is None else OF_PIECES
    body += _mean(tree=tree, places=places, weight="alpha")
    outputs = f"float[B, {table.shape[1]}] embedding"
    return graph(_inputs(tree=tree, places=places), outputs, body, _constants(table, places))


def explain_graph(table: Floats, *, tree: bool, places: Floats | None = None) -> bytes:
    """explain.onnx, whole: the same of sentences without padding, with one map, two poolings, a gate.

    The map is the softmax of the tokens' products, the first pooling that of their sums. The prior
    `dependency` is alpha. Word vectors of words can be scaled.
    """
    constants, width = _constants(table, places), table.shape[1]
    inputs, body = _inputs(tree=tree, places=places), OF_PIECES
    if places is None:
        constants[SCALE] = np.ones((1, 1), np.float32)
        inputs, body = f"{inputs}, float[SB, SL] {SCALE}", SCALED.replace("scale,", f"{SCALE},")
    if tree:
        inputs += ", bool dependency"
        body = "on = Cast <to: int = 1> (dependency)\nweight = Mul (alpha, on)\n" + body
    body += _mean(tree=tree, places=places, weight="weight") + EXPLAINED
    outputs = (
        f"float[B, {width}] embedding, float[B, L, {width}] states, float[B, 2, L] pooling, "
        "float[B, 1, L, L] maps, float[B, 1, L] gate"
    )
    return graph(inputs, outputs, body, constants, NAMES)


def head_graph(kind: Kind, dimension: int, classes: int) -> bytes:
    """head.onnx: one linear layer over the sentence, or over [first; second; first * second]."""
    rng = np.random.default_rng(2)
    body, width = "logits = MatMul (sentence, weights)", dimension
    inputs = f"float[B, {dimension}] sentence"
    if kind != "classification":
        inputs = f"float[B, {dimension}] first, float[B, {dimension}] second"
        body = """
            product = Mul (first, second)
            features = Concat <axis: int = 1> (first, second, product)
            logits = MatMul (features, weights)
        """
        width = 3 * dimension
    weights = rng.normal(size=(width, classes)).astype(np.float32)
    return graph(inputs, f"float[B, {classes}] logits", body, {"weights": weights})


def doubled(content: bytes) -> onnx.ModelProto:
    """The same graph, but that its embedding is added to itself."""
    model = onnx.load_from_string(content)
    for node in model.graph.node:
        if "embedding" in node.output:
            node.output[0] = "half"
    model.graph.node.append(helper.make_node("Add", ["half", "half"], ["embedding"]))
    return model


def _constants(table: Floats, places: Floats | None) -> dict[str, Any]:
    found: dict[str, Any] = {"table": table, "zero": np.array(0), "one": np.array(1)}
    found |= {"last": np.array([-1]), "first": np.array([1])}
    return found if places is None else {**found, "places": places}


def _inputs(*, tree: bool, places: Floats | None) -> str:
    of_pieces = "" if places is None else ", int64[B, L] pieces"
    of_trees = ", int64[B, L] heads, float alpha" if tree else ""
    return f"int64[B, S] ids, int64[B] lengths{of_pieces}{of_trees}"


def _mean(*, tree: bool, places: Floats | None, weight: str) -> str:
    """From words (B, L, D) to the embedding (B, D)."""
    hidden = GOVERNED.replace("weight", weight) if tree else "\nhidden = Tanh (words)"
    return hidden + MEAN.replace("shaped", "ids" if places is None else "pieces")


def graph(
    inputs: str,
    outputs: str,
    body: str,
    constants: dict[str, Any],
    metadata: dict[str, Any] | None = None,
) -> bytes:
    head = '<ir_version: 9, opset_import: ["" : 20]>'
    model = onnx.parser.parse_model(f"{head} tiny ({inputs}) => ({outputs}) {{ {body} }}")
    tensors = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    model.graph.initializer.extend(tensors)
    helper.set_model_props(model, {k: json.dumps(v) for k, v in (metadata or {}).items()})
    onnx.checker.check_model(model, full_check=True)
    serialised: bytes = model.SerializeToString()
    return serialised

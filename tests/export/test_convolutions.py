"""Convolutions as products: torch's convolution, for any kernel and padding."""

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from torch.nn import functional

from heedful.export.convolutions import as_products
from heedful.export.int8 import float_graph, int8_graph, products
from heedful.export.onnx import encoder_graph
from heedful.models.registry import build
from heedful.models.sentence import SentenceEncoder, word_table
from tests.export.trained import DIM, MAX_TOKENS, WORDS


def convolution(kernel: np.ndarray, bias: np.ndarray, **attributes: Any) -> onnx.ModelProto:
    """x (B, C, L) -> y, by one Conv."""
    shape = ("B", kernel.shape[1], "L")
    made = helper.make_graph(
        [helper.make_node("Conv", ["x", "w", "b"], ["y"], **attributes)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["B", len(kernel), "M"])],
        [numpy_helper.from_array(kernel, "w"), numpy_helper.from_array(bias, "b")],
    )
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def run(model: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return np.asarray(session.run(None, {"x": x})[0])


@settings(max_examples=40)
@given(
    st.integers(1, 5),
    st.tuples(st.integers(0, 3), st.integers(0, 3)),
    st.integers(1, 9),
    st.integers(0, 2**32 - 1),
)
def test_the_product_is_the_convolution(
    width: int, pads: tuple[int, int], length: int, seed: int
) -> None:
    if length + sum(pads) < width:
        length = width
    rng = np.random.default_rng(seed)
    kernel, bias = rng.normal(size=(4, 6, width)), rng.normal(size=4)
    kernel, bias = kernel.astype(np.float32), bias.astype(np.float32)
    x = rng.normal(size=(3, 6, length)).astype(np.float32)
    model = as_products(convolution(kernel, bias, pads=pads))
    assert {node.op_type for node in model.graph.node}.isdisjoint({"Conv"})
    padded = functional.pad(torch.from_numpy(x), pads)
    wanted = functional.conv1d(padded, torch.from_numpy(kernel), torch.from_numpy(bias))
    np.testing.assert_allclose(run(model, x), wanted.numpy(), atol=1e-5)


def test_in_integers_it_is_the_convolution_of_rounded_columns() -> None:
    rng = np.random.default_rng(0)
    kernel, bias = rng.normal(size=(4, 6, 3)).astype(np.float32), np.zeros(4, np.float32)
    model = as_products(convolution(kernel, bias, pads=(1, 1)))
    (product,) = products(model)
    x = rng.normal(size=(2, 6, 7)).astype(np.float32)
    exact = run(model, x)
    assert np.abs(run(int8_graph(model, {product.key}), x) - exact).max() < 0.1
    assert np.abs(run(float_graph(model, {product.key}), x) - exact).max() < 0.1
    # A row of words is rounded alone: the other sentence of the batch changes no bit.
    alone = run(int8_graph(model, {product.key}), x[:1])
    np.testing.assert_array_equal(run(int8_graph(model, {product.key}), x)[:1], alone)


@pytest.mark.parametrize(
    "attributes",
    [{"strides": [2]}, {"dilations": [2]}, {"group": 2}, {"auto_pad": "SAME_UPPER"}],
)
def test_any_other_convolution_stays(attributes: dict[str, object]) -> None:
    inputs = 3 if "group" in attributes else 6
    model = convolution(np.ones((4, inputs, 3), np.float32), np.zeros(4, np.float32), **attributes)
    if "group" in attributes:
        model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 6
    assert as_products(model) == model


@pytest.mark.parametrize("name", ["dsa", "cnn-max"])
def test_an_exported_encoder_has_products_alone(name: str) -> None:
    torch.manual_seed(0)
    table = word_table(torch.randn(WORDS, DIM), frozen=True)
    model = SentenceEncoder(table, build(name, {"dim": DIM, "max_tokens": MAX_TOKENS})).eval()
    graph = onnx.load_from_string(encoder_graph(model))
    kinds = [node.op_type for node in graph.graph.node]
    assert "Conv" not in kinds
    assert "MatMul" in kinds

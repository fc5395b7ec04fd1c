"""Attention replaced in a graph: a masked softmax over each axis, compared with numpy."""

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import TensorProto, helper

from heedful.export.errors import ExportError
from heedful.text.arrays import Floats
from heedful.text.graph import open_session
from tools.attention_controls import Control, controlled

ALLOWED = np.array(
    [[[True, True, True, False], [True, False, False, False], [True, True, True, True]]]
)


def graph(axis: int, operator: str = "Softmax") -> bytes:
    shape = ("B", "Q", "K")
    nodes = [helper.make_node(operator, ["logits"], ["weights"], axis=axis)]
    nodes.append(helper.make_node("Identity", ["weights"], ["out"]))
    value = helper.make_tensor_value_info
    made = helper.make_graph(
        nodes,
        "attention",
        [value("logits", TensorProto.FLOAT, shape)],
        [value("out", TensorProto.FLOAT, shape)],
    )
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    serialised: bytes = model.SerializeToString()
    return serialised


def run(content: bytes, logits: Floats) -> npt.NDArray[Any]:
    onnx.checker.check_model(onnx.load_from_string(content), full_check=True)
    (found,) = open_session(content).run(None, {"logits": logits})
    weights: npt.NDArray[Any] = found
    return weights


@pytest.mark.parametrize("axis", [-1, 1])
@pytest.mark.parametrize("control", ["uniform", "permuted", "random"])
def test_weights_are_replaced_among_the_allowed_tokens(control: Control, axis: int) -> None:
    rng = np.random.default_rng(0)
    allowed = ALLOWED if axis == -1 else ALLOWED.swapaxes(1, 2)
    logits = np.where(allowed, rng.normal(size=allowed.shape), -np.inf).astype(np.float32)
    trained = run(graph(axis), logits)
    content = controlled(graph(axis), control)
    found = run(content, logits)
    np.testing.assert_array_equal(found > 0, allowed)
    np.testing.assert_allclose(found.sum(axis), 1, atol=1e-6)
    if control == "uniform":
        counts = allowed.sum(axis, keepdims=True)
        np.testing.assert_allclose(found, allowed / counts, atol=1e-6)
    elif control == "permuted":
        np.testing.assert_array_equal(np.sort(found, axis), np.sort(trained, axis))
        many = np.where(rng.random((1, 50, 50)) < 2, rng.normal(size=(1, 50, 50)), 0)
        many = many.astype(np.float32)
        assert (run(content, many) != run(graph(axis), many)).mean() > 0.9
    else:
        assert not np.allclose(found, trained, atol=1e-3)
        np.testing.assert_array_equal(run(content, logits), found)  # fixed


def test_a_graph_without_attention_is_refused() -> None:
    with pytest.raises(ExportError, match="holds no softmax"):
        controlled(graph(-1, "LogSoftmax"), "uniform")

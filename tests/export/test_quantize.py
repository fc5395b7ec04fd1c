"""What storing small does to the weights."""

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from export.quantize import Int8Table, round_weights, store_half
from models.heads import NLIHead


def test_int8_rows_are_within_half_a_step() -> None:
    weight = torch.randn(30, 8, generator=torch.Generator().manual_seed(0))
    weight *= torch.logspace(-6, 3, 30)[:, None]  # rows of very different length
    table = Int8Table(weight)
    step = weight.abs().amax(1, keepdim=True) / 127
    found = table(torch.arange(30)[None])[0]
    assert ((found - weight).abs() <= step * 0.5001).all()
    assert table.rows.dtype == torch.int8
    assert int(table.rows.abs().amax()) == 127


def test_an_empty_row_stays_empty() -> None:
    assert Int8Table(torch.zeros(2, 4))(torch.tensor([[0, 1]])).tolist() == [[[0.0] * 4] * 2]


def test_ids_of_any_shape_are_looked_up() -> None:
    table = Int8Table(torch.eye(5))
    ids = torch.tensor([[4, 0, 2], [1, 1, 3]])
    assert torch.equal(table(ids), torch.eye(5)[ids])


def test_matrices_are_rounded_and_vectors_are_not() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(7, 6), nn.Linear(6, 5), nn.Sequential(nn.Embedding(3, 2)))
    linear = model[1]
    assert isinstance(linear, nn.Linear)
    weight, bias = linear.weight.detach().clone(), linear.bias.detach().clone()
    round_weights(model)
    assert isinstance(model[0], Int8Table)
    assert isinstance(model.get_submodule("2.0"), Int8Table)
    assert torch.equal(linear.weight, weight.half().float())
    assert not torch.equal(linear.weight, weight)
    assert torch.equal(linear.bias, bias)


def test_a_weight_beyond_float16_is_refused() -> None:
    head = NLIHead(2, hidden=3)
    with torch.no_grad():
        head.get_parameter("layers.1.weight")[1, 1] = 70_000
    with pytest.raises(ValueError, match=r"layers\.1\.weight is beyond float16"):
        round_weights(head)


def graph(**tensors: np.ndarray) -> onnx.ModelProto:
    nodes = [helper.make_node("Sum", list(tensors), ["sum"])]
    output = helper.make_tensor_value_info("sum", TensorProto.FLOAT, [None, 2])
    initializers = [numpy_helper.from_array(value, name) for name, value in tensors.items()]
    return helper.make_model(helper.make_graph(nodes, "g", [], [output], initializers))


def test_only_what_float16_holds_is_stored_as_such() -> None:
    exact = np.array([[0.5, -2.0], [65504.0, 0.0]], np.float32)
    inexact = np.array([[0.1, 1.0]], np.float32)
    large = np.array([[1e6, 1.0]], np.float32)
    vector = np.array([1.0, 2.0], np.float32)
    model = graph(exact=exact, inexact=inexact, vector=vector)
    store_half(model)
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    assert {name: tensor.data_type for name, tensor in stored.items()} == {
        "exact_half": TensorProto.FLOAT16,
        "inexact": TensorProto.FLOAT,
        "vector": TensorProto.FLOAT,
    }
    assert [node.op_type for node in model.graph.node] == ["Cast", "Sum"]
    onnx.checker.check_model(model, full_check=True)
    np.testing.assert_array_equal(numpy_helper.to_array(stored["exact_half"]), exact)
    overflowing = graph(large=large)
    store_half(overflowing)
    assert overflowing.graph.initializer[0].data_type == TensorProto.FLOAT

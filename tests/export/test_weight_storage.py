"""What storing small does to the weights."""

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from heedful.export.weight_storage import (
    LARGE,
    Int4Table,
    Int8Linear,
    Int8Table,
    round_weights,
    store_half,
)


def test_int8_rows_are_within_half_a_step() -> None:
    weight = torch.randn(30, 8, generator=torch.Generator().manual_seed(0))
    weight *= torch.logspace(-6, 3, 30)[:, None]  # rows of very different length
    weight[7] = 0
    table = Int8Table(weight)
    step = weight.abs().amax(1, keepdim=True) / 127
    found = table(torch.arange(30).view(2, 15)).view(30, 8)
    assert ((found - weight).abs() <= step * 0.5001).all()
    assert table.rows.dtype == torch.int8
    assert int(table.rows.abs().amax()) == 127
    linear = nn.Linear(9, 4)
    small, x = Int8Linear(linear), torch.randn(2, 3, 9)
    torch.testing.assert_close(small(x), x @ small.weight.T + linear.bias)
    step = linear.weight.abs().amax(1, keepdim=True) / 127
    assert ((small.weight - linear.weight).abs() <= step * 0.5001).all()


@pytest.mark.parametrize("width", [64, 24, 2])
def test_int4_values_are_within_half_a_step_of_their_block(width: int) -> None:
    weight = torch.randn(30, width, generator=torch.Generator().manual_seed(0)) + 1
    weight *= torch.logspace(-2, 2, 30)[:, None]
    weight[7] = 0.5
    table = Int4Table(weight)
    blocks = weight.unflatten(1, (-1, table.block))
    step = (blocks.amax(-1, keepdim=True) - blocks.amin(-1, keepdim=True)) / 15
    found = table(torch.arange(30).view(2, 15)).view(30, -1, table.block)
    half = blocks.abs().amax(-1, keepdim=True) * 2**-11  # the least value is float16
    assert ((found - blocks).abs() <= step * 0.51 + 2 * half).all()
    assert (found[7] == 0.5).all()
    assert table.rows.numel() == weight.numel() // 2
    with pytest.raises(ValueError, match="a table of 5 features has no int4 form"):
        Int4Table(torch.randn(3, 5))


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
    model = nn.Sequential(nn.Embedding(LARGE // 2 + 1, 2), nn.Embedding(7, 2), nn.Linear(2, 3))
    round_weights(model, "small")
    assert [type(part) for part in model] == [Int4Table, Int8Table, Int8Linear]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["0.weight", "1.weight", "1.bias"])
def test_a_weight_that_is_no_finite_number_is_refused(name: str, value: float) -> None:
    model = nn.Sequential(nn.Embedding(3, 2), nn.Linear(2, 2))
    with torch.no_grad():
        model.get_parameter(name)[1] = value
    with pytest.raises(ValueError, match=rf"a weight of {name} is not a finite number: train"):
        round_weights(model, "small")


def test_only_what_float16_holds_is_stored_as_such() -> None:
    tensors = {
        "exact": np.array([[0.5, -2.0], [65504.0, 0.0]], np.float32),
        "inexact": np.array([[0.1, 1.0]], np.float32),
        "large": np.array([[1e6, 1.0]], np.float32),
        "vector": np.array([1.0, 2.0], np.float32),
    }
    output = helper.make_tensor_value_info("sum", TensorProto.FLOAT, [None, 2])
    initializers = [numpy_helper.from_array(value, name) for name, value in tensors.items()]
    node = helper.make_node("Sum", list(tensors), ["sum"])
    model = helper.make_model(helper.make_graph([node], "g", [], [output], initializers))
    store_half(model)
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    assert {name: tensor.data_type for name, tensor in stored.items()} == {
        "exact_half": TensorProto.FLOAT16,
        "inexact": TensorProto.FLOAT,
        "large": TensorProto.FLOAT,
        "vector": TensorProto.FLOAT,
    }
    assert [node.op_type for node in model.graph.node] == ["Cast", "Sum"]
    onnx.checker.check_model(model, full_check=True)
    np.testing.assert_array_equal(numpy_helper.to_array(stored["exact_half"]), tensors["exact"])

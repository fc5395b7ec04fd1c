"""Tables in 4 bits, decoded by their bits: the same values."""

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from heedful.export.bit_codes import shifted_codes
from heedful.export.onnx import graph
from heedful.export.weight_storage import Int4Table


@pytest.mark.parametrize("width", [2, 30, 300])
def test_the_values_have_the_same_bits(width: int) -> None:
    torch.manual_seed(0)
    table = Int4Table(torch.randn(50, width))
    example = {"ids": torch.ones(3, 5, dtype=torch.long)}
    made = onnx.load_from_string(graph(table, example, {"ids": {0: "B", 1: "L"}}, ["words"]))
    shifted = onnx.ModelProto()
    shifted.CopyFrom(made)
    shifted_codes(shifted)
    assert "Mod" in {node.op_type for node in made.graph.node}
    assert not {"Mod", "Div"} & {node.op_type for node in shifted.graph.node}
    ids = np.random.default_rng(0).integers(0, 50, (4, 7))
    expected, found = (
        onnxruntime.InferenceSession(
            model.SerializeToString(), providers=["CPUExecutionProvider"]
        ).run(None, {"ids": ids})[0]
        for model in (made, shifted)
    )
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_allclose(found, table(torch.from_numpy(ids)).numpy(), rtol=1e-6, atol=1e-6)


def test_a_graph_without_such_a_table_stays() -> None:
    example = {"input": torch.ones(2, 3)}
    made = onnx.load_from_string(graph(torch.nn.Linear(3, 3), example, {"input": {0: "B"}}, ["y"]))
    before = made.SerializeToString(deterministic=True)
    shifted_codes(made)
    assert made.SerializeToString(deterministic=True) == before

"""What the weights lose to be stored small, done to the torch model before it is exported.

Matrices are stored as float16 and computed with as float32: a Cast stands behind each in the graph,
and ONNX Runtime folds it once at load. The word table is stored as int8 rows with a float32 scale
each, of which only the rows of a batch's words are read. A transformer's matrices may be stored as
int8 rows too (`Storage`): a Cast and a Mul stand behind each, and are folded the same way. Because the torch model is rounded first,
the graph is held to it exactly; activations are never rounded, so that a sentence's vector does not
depend on what it is batched with.
"""

from typing import Literal

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn
from torch.nn import functional


Storage = Literal["float16", "int8"]
"""How matrices are stored: float16 in 2 bytes a weight, int8 in 1, with a scale for each output."""


class Int8Linear(nn.Module):
    """A linear layer whose weight (out, in) is int8 rows, each with its scale."""

    rows: Tensor
    scales: Tensor

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        rows, scales = int8_rows(linear.weight)
        self.register_buffer("rows", rows)
        self.register_buffer("scales", scales)
        self.bias = linear.bias

    @property
    def weight(self) -> Tensor:
        """As it is computed with, in float32."""
        return self.rows.float() * self.scales

    def forward(self, x: Tensor) -> Tensor:
        return functional.linear(x, self.weight, self.bias)


def int8_rows(weight: Tensor) -> tuple[Tensor, Tensor]:
    """(V, D) -> int8 rows and the scales (V, 1) that make each row's largest value 127."""
    weight = weight.detach()
    scales = weight.abs().amax(dim=1, keepdim=True) / 127
    scales = torch.where(scales > 0, scales, 1)  # an empty row stays empty
    return (weight / scales).round().to(torch.int8), scales


class Int8Table(nn.Module):
    """A word table (V, D) as int8 rows, each with the scale that makes its largest value 127."""

    rows: Tensor
    scales: Tensor

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        rows, scales = int8_rows(weight)
        self.register_buffer("rows", rows)
        self.register_buffer("scales", scales)

    def forward(self, ids: Tensor) -> Tensor:
        """ids (B, L) -> (B, L, D)."""
        rows = functional.embedding(ids, self.rows).float()
        return rows * functional.embedding(ids, self.scales)


def round_weights(model: nn.Module, storage: Storage = "float16") -> None:
    """Round matrices to float16 and replace word tables by int8 ones, in place.

    With `storage` int8, linear layers become int8 too. Vectors (biases, norms) weigh nothing and stay. Raises ValueError for a weight beyond float16.
    """
    for module in list(model.modules()):
        for name, child in module.named_children():
            if isinstance(child, nn.Embedding):
                setattr(module, name, Int8Table(child.weight))
            elif isinstance(child, nn.Linear) and storage == "int8":
                setattr(module, name, Int8Linear(child))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1:
                parameter.copy_(parameter.half())
                if not parameter.isfinite().all():
                    raise ValueError(f"a weight of {name} is beyond float16 (65,504)")


def store_half(model: onnx.ModelProto) -> None:
    """Store every float32 matrix of the graph that float16 holds without loss as that, in place."""
    casts = []
    for tensor in model.graph.initializer:
        if tensor.data_type != TensorProto.FLOAT or len(tensor.dims) < 2:
            continue
        values = numpy_helper.to_array(tensor)
        with np.errstate(over="ignore"):  # an infinity is not equal to what it was
            half = values.astype(np.float16)
        if np.array_equal(half.astype(np.float32), values):
            name = tensor.name
            tensor.CopyFrom(numpy_helper.from_array(half, f"{name}_half"))
            casts.append(helper.make_node("Cast", [tensor.name], [name], to=TensorProto.FLOAT))
    nodes = [*casts, *model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend(nodes)

"""The weights of a bundle's graphs, loaded into torch, whatever their storage (`export.weight_storage`).

A graph names most tensors after their parameter. The exporter names a transposed matrix of a product itself: these are
matched by the order of the products, in which torch computes them too. `training.restore_bundle` then compares torch
with the graph.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import torch
from onnx import numpy_helper
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from heedful.text.arrays import Floats

PRODUCTS = ("aten::mm", "aten::addmm", "aten::bmm", "aten::mv")
RESTORED = "_float"
"""Suffix of the name of a matrix that a graph computes from its bytes (`export.int8`)."""


def table(parts: Mapping[str, npt.NDArray[Any]]) -> Floats | None:
    """The floats (V, D) of a table or a linear layer from its tensors in int8 or in 4 bits; None for other tensors."""
    match parts:
        case {"rows": rows, "scales": scales}:
            return np.asarray(rows * scales, np.float32)
        case {"rows": rows, "steps": steps, "least": least}:
            codes = np.stack([rows % 16, rows // 16], axis=-1)  # (V, D / 2, 2)
            blocks = codes.reshape(*steps.shape, -1).astype(np.float32)
            decoded: Floats = (blocks * steps[..., None] + least[..., None]).reshape(len(rows), -1)
            return decoded
        case _:
            return None


def arrays(graph: onnx.GraphProto) -> dict[str, Floats]:
    """The graph's weights in float32, by the names that its nodes read."""
    tensors = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    weights: dict[str, Floats] = {}
    for name, value in tensors.items():
        if name.endswith(".rows"):
            base = name.removesuffix("rows")
            parts = {
                part: tensors.get(base + part) for part in ("rows", "scales", "steps", "least")
            }
            decoded = table({part: array for part, array in parts.items() if array is not None})
            if decoded is not None:
                weights[f"{base}weight"] = decoded
        elif name.endswith("_bytes"):
            base = name.removesuffix("_bytes")
            weights[base] = value * tensors[f"{base}_scales"]
        elif value.dtype == np.float16:
            weights[name.removesuffix("_half")] = value.astype(np.float32)
        elif value.dtype == np.float32:
            weights[name] = value
    return weights


def load(
    graph: onnx.GraphProto, module: nn.Module, run: Callable[[], object], names: Mapping[str, str]
) -> None:
    """Load the graph's weights into the module, which `run` runs once. `names` maps parameters to names in the graph.

    Raises ValueError where the graph is of another module.
    """
    stored = arrays(graph)
    state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    missing = dict(module.named_parameters())
    with torch.no_grad():
        for name, weight in state.items():
            array = stored.pop(names.get(name, name), stored.pop(f"{name}_matrix", None))
            if array is not None:
                _copy(weight, array, name)
                missing.pop(name, None)
        with _LoadProducts(missing, _product_matrices(graph, stored)):
            run()
    if missing:
        raise ValueError(f"it has no weight {min(missing)}")


class _LoadProducts(TorchDispatchMode):
    """While a module runs, loads the next matrix into each missing weight that a product reads."""

    def __init__(self, missing: dict[str, nn.Parameter], matrices: Iterator[Floats]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch does not type it
        self._missing, self._matrices = missing, matrices
        self._names = {item.data_ptr(): name for name, item in missing.items() if item.dim() > 1}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func.name() in PRODUCTS:
            for operand in (argument for argument in args if isinstance(argument, Tensor)):
                name = self._names.pop(operand.data_ptr(), None)
                if name is not None:
                    matrix = next(self._matrices, None)
                    if matrix is None:
                        raise ValueError(f"it has no product with {name}")
                    _copy(operand, matrix, name)
                    del self._missing[name]
        return func(*args, **(kwargs or {}))


def _product_matrices(graph: onnx.GraphProto, stored: dict[str, Floats]) -> Iterator[Floats]:
    """The stored matrices (K, N) that products read, in order, each once."""
    for node in graph.node:
        if node.op_type in ("MatMul", "Gemm"):
            matrix = stored.pop(node.input[1].removesuffix(RESTORED), None)
            if matrix is not None:
                transposed = any(item.name == "transB" and item.i for item in node.attribute)
                yield matrix.T if transposed else matrix


def _copy(weight: Tensor, array: Floats, name: str) -> None:
    """Raise ValueError for another shape."""
    if weight.shape != array.shape:
        raise ValueError(f"{name} has the shape {tuple(array.shape)}, not {tuple(weight.shape)}")
    weight.copy_(torch.from_numpy(np.array(array)))

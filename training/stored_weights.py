"""The weights that a bundle's graphs store, put back into torch, whatever their storage (`export.weight_storage`).

A graph names most tensors after their parameter. A matrix that a product reads turned round has a name of the
exporter's making: these are matched by the order of the products, which is that in which torch computes them.
`training.restore_bundle` then compares torch with the graph.
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
"""Ends the name of a matrix that a graph computes from its bytes (`export.int8`)."""


def table(parts: Mapping[str, npt.NDArray[Any]]) -> Floats | None:
    """The vectors (V, D) of a table or a linear layer from its tensors, in int8 or in 4 bits; None for others."""
    match parts:
        case {"rows": rows, "scales": scales}:
            return np.asarray(rows * scales, np.float32)
        case {"rows": rows, "steps": steps, "least": least}:
            codes = np.stack([rows % 16, rows // 16], axis=-1)  # (V, D / 2, 2)
            blocks = codes.reshape(*steps.shape, -1).astype(np.float32)
            found: Floats = (blocks * steps[..., None] + least[..., None]).reshape(len(rows), -1)
            return found
        case _:
            return None


def arrays(graph: onnx.GraphProto) -> dict[str, Floats]:
    """The graph's weights in float32, by the names under which they are computed with."""
    tensors = {one.name: numpy_helper.to_array(one) for one in graph.initializer}
    found: dict[str, Floats] = {}
    for name, value in tensors.items():
        if name.endswith(".rows"):
            base = name.removesuffix("rows")
            parts = {
                part: tensors.get(base + part) for part in ("rows", "scales", "steps", "least")
            }
            decoded = table({part: one for part, one in parts.items() if one is not None})
            if decoded is not None:
                found[f"{base}weight"] = decoded
        elif name.endswith("_bytes"):
            base = name.removesuffix("_bytes")
            found[base] = value * tensors[f"{base}_scales"]
        elif value.dtype == np.float16:
            found[name.removesuffix("_half")] = value.astype(np.float32)
        elif value.dtype == np.float32:
            found[name] = value
    return found


def put(
    graph: onnx.GraphProto, module: nn.Module, run: Callable[[], object], names: Mapping[str, str]
) -> None:
    """Give the module the graph's weights; `run` runs it once. `names` are parameters under other names in the graph.

    Raises ValueError where the graph is of another module.
    """
    held = arrays(graph)
    state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    missing = dict(module.named_parameters())
    with torch.no_grad():
        for name, one in state.items():
            found = held.pop(names.get(name, name), held.pop(f"{name}_matrix", None))
            if found is not None:
                _copy(one, found, name)
                missing.pop(name, None)
        with _Products(missing, _products(graph, held)):
            run()
    if missing:
        raise ValueError(f"it has no weight {min(missing)}")


class _Products(TorchDispatchMode):
    """While a module runs: each weight that a product reads and that is missing gets the next matrix."""

    def __init__(self, missing: dict[str, nn.Parameter], matrices: Iterator[Floats]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch does not type it
        self._missing, self._matrices = missing, matrices
        self._names = {one.data_ptr(): name for name, one in missing.items() if one.dim() > 1}

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Any = None,
    ) -> Any:
        if func.name() in PRODUCTS:
            for one in args:
                name = self._names.pop(one.data_ptr(), None) if isinstance(one, Tensor) else None
                if name is not None:
                    matrix = next(self._matrices, None)
                    if matrix is None:
                        raise ValueError(f"it has no product with {name}")
                    _copy(one, matrix, name)
                    del self._missing[name]
        return func(*args, **(kwargs or {}))


def _products(graph: onnx.GraphProto, held: dict[str, Floats]) -> Iterator[Floats]:
    """The matrices (K, N) that products read, in order, each once."""
    for node in graph.node:
        if node.op_type in ("MatMul", "Gemm"):
            matrix = held.pop(node.input[1].removesuffix(RESTORED), None)
            if matrix is not None:
                turned = any(one.name == "transB" and one.i for one in node.attribute)
                yield matrix.T if turned else matrix


def _copy(to: Tensor, found: Floats, name: str) -> None:
    """Raises ValueError for another shape."""
    if to.shape != found.shape:
        raise ValueError(f"{name} has the shape {tuple(found.shape)}, not {tuple(to.shape)}")
    to.copy_(torch.from_numpy(np.array(found)))

"""Operations of an encoder for a sentence of L tokens, counted while its torch module runs.

A multiplication or an addition is one operation, in matrix products as well as value by value. tanh, exp and
what is made of them count as what ONNX Runtime's CPU kernels compute in their place: a rational or a
polynomial function of 23 operations (MLAS, tanh.cpp, logistic.cpp and compute.cpp). Moving data is free.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from heedful.models.sentence import Encoder

FUNCTION = 23
"""Operations of tanh, of the logistic function and of exp, give or take two."""
_aten = torch.ops.aten
_FUNCTIONS = {_aten.tanh, _aten.exp, _aten.sigmoid, _aten.elu, _aten._softmax}
_REDUCTIONS = {_aten.sum, _aten.amax, _aten.mean, _aten.native_layer_norm}


class Counter(TorchDispatchMode):
    """Counts inside `with`."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's annotation
        self.operations: int = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        kind = func.overloadpacket
        if kind in flop_registry:
            self.operations += flop_registry[kind](*args, **(kwargs or {}), out_val=out)
        elif kind in _FUNCTIONS:
            self.operations += FUNCTION * out.numel()
        elif kind in _REDUCTIONS:
            self.operations += args[0].numel()
        elif torch.Tag.pointwise in func.tags:
            self.operations += out.numel()
        return out


def count(encoder: Encoder, length: int, dim: int) -> int:
    """Operations for one sentence of `length` word vectors of size `dim`, whose tree is a chain."""
    structure: dict[str, Tensor] = {}
    if "heads" in encoder.inputs:
        structure["heads"] = torch.arange(length).sub(1).clamp(min=0)[None]
    if "alpha" in encoder.inputs:
        structure["alpha"] = torch.tensor(1.0)
    return counted(encoder, torch.zeros(1, length, dim), torch.tensor([length]), **structure)


def counted(module: nn.Module, *inputs: Tensor, **keywords: Tensor) -> int:
    """Operations of one call of a module."""
    with torch.no_grad(), Counter() as counter:
        module.eval()(*inputs, **keywords)
    total: int = counter.operations
    return total

"""Round the weights of a trained model, once, to the precision in which its bundle stores them.

The word tables are replaced in torch before the model is traced (`store_tables`): int8 rows with a float32 scale each,
or 4 bits; a graph reads only the rows of a batch's words. Matrices are traced as trained and rounded in the graph: to
bytes where products are computed in integers (`export.int8`), else to float16 (`store_half`), which the graph casts and
ONNX Runtime folds once at load. `round_weights` gives torch the same values, so that graph and
model must agree exactly; activations are never rounded, so that a sentence's vector does not depend on its batch.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Literal

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn
from torch.nn import functional

from heedful.export.int8 import int8_columns, key
from heedful.models.composed_words import ComposedWords
from heedful.models.four_bit_embedding import FourBitEmbedding, coded
from heedful.models.lama import LAMA
from heedful.text.arrays import Floats

Storage = Literal["normal", "small"]
"""normal: matrices float16, tables int8. small: matrices int8; int4 for a table of more than LARGE values and for
subword features. Both store a table that was trained in 4 bits in 4 bits."""
LARGE = 2**20


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
        """The matrix (out, in) in float32."""
        return self.rows.float() * self.scales

    def forward(self, x: Tensor) -> Tensor:
        return functional.linear(x, self.weight, self.bias)


def int8_rows(weight: Tensor) -> tuple[Tensor, Tensor]:
    """(V, D) -> int8 rows (V, D) and scales (V, 1); each row's largest byte is 127."""
    weight = weight.detach()
    scales = weight.abs().amax(dim=1, keepdim=True) / 127
    scales = torch.where(scales > 0, scales, 1)  # an empty row stays empty
    return (weight / scales).round().to(torch.int8), scales


class Int8Table(nn.Module):
    """A word table (V, D) as int8 rows with a scale each."""

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


class Int4Table(nn.Module):
    """A table (V, D) in 4 bits: 16 even steps from the minimum to the maximum of each block of a row.

    Steps and minima are float16; two neighbouring values share a byte, the first in its low bits.
    """

    rows: Tensor
    steps: Tensor
    least: Tensor

    def __init__(self, weight: Tensor) -> None:
        """Raises ValueError for an odd D."""
        super().__init__()
        if weight.shape[1] % 2:
            raise ValueError(
                f"a table of {weight.shape[1]} features has no int4 form: it needs an even number"
            )
        values, steps, least = coded(weight)
        self.block = values.shape[-1]
        codes = values.to(torch.uint8).flatten(1)
        self.register_buffer("rows", codes[:, 0::2] + 16 * codes[:, 1::2])  # (V, D / 2)
        self.register_buffer("steps", steps[..., 0])  # (V, D / block)
        self.register_buffer("least", least[..., 0])

    def forward(self, ids: Tensor) -> Tensor:
        """ids (B, L) -> (B, L, D)."""
        rows = functional.embedding(ids, self.rows).int()
        codes = torch.stack([rows % 16, rows // 16], dim=-1).flatten(-2).float()  # (B, L, D)
        steps = functional.embedding(ids, self.steps).float()[..., None]
        least = functional.embedding(ids, self.least).float()[..., None]
        values: Tensor = codes.unflatten(-1, (-1, self.block)) * steps + least
        return values.flatten(-2)


def round_weights(
    model: nn.Module,
    storage: Storage = "normal",
    int8: Collection[str] = (),
    *,
    linear: bool | None = None,
) -> None:
    """Give the model the values that its graph computes with, in place.

    `int8` are the keys of matrices stored as columns of bytes; `linear` is that of `store_tables`. Raises
    ValueError for a weight that is not finite, or is beyond float16.
    """
    store_tables(model, storage, linear=linear)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            stored = [(view, array) for view, array in _forms(parameter) if key(array) in int8]
            if stored:
                view, array = stored[0]
                columns, scales = int8_columns(array)
                view.copy_(torch.from_numpy((columns * scales).reshape(view.shape)))
            elif parameter.dim() > 1:
                parameter.copy_(parameter.half())
                if not parameter.isfinite().all():
                    raise ValueError(f"a weight of {name} is beyond float16 (65,504)")


def store_tables(model: nn.Module, storage: Storage, *, linear: bool | None = None) -> None:
    """Replace the word tables, in place, and where `linear` is set the linear layers by int8 rows.

    By default `linear` follows from `storage`. Vectors (biases, norms) are small and stay. Raises ValueError for a
    weight that is not finite.
    """
    linear = storage == "small" if linear is None else linear
    for (
        name,
        parameter,
    ) in model.named_parameters():  # before the rounding, because int8 rows hide NaN
        if not parameter.isfinite().all():
            raise ValueError(f"a weight of {name} is not a finite number: train with a lower rate")
    for module in list(model.modules()):
        if isinstance(module, LAMA) and module.context is not None:
            # Rounded here, because the exporter folds its product with the fixed context.
            factors = module.attention.context_factors.weight
            factors.data = factors.data.half().float()
        for name, child in module.named_children():
            if isinstance(child, nn.Embedding):
                features = isinstance(module, ComposedWords) and name == "features"
                large = storage == "small" and (features or child.weight.numel() > LARGE)
                four = large or isinstance(child, FourBitEmbedding)  # as it was trained
                setattr(module, name, (Int4Table if four else Int8Table)(child.weight))
            elif isinstance(child, nn.Linear) and linear:
                setattr(module, name, Int8Linear(child))


def weight_keys(model: nn.Module) -> dict[str, str]:
    """Key -> parameter's name, for each form of a weight of two or more dimensions in which a graph may hold it."""
    weights = [(name, parameter.detach()) for name, parameter in model.named_parameters()]
    return {key(array): name for name, weight in weights for _, array in _forms(weight)}


def _forms(weight: Tensor) -> Iterator[tuple[Tensor, Floats]]:
    """The forms in which a graph may hold a weight, as view and array: the weight, and a matrix's transpose."""
    if weight.dim() > 1:
        yield weight, weight.numpy()
    if weight.dim() == 2:
        yield weight.T, weight.T.numpy()


def store_half(model: onnx.ModelProto, weights: Mapping[str, str] = {}) -> onnx.ModelProto:
    """Store as float16, in place, the matrices of these keys, and all others that float16 holds without loss.

    `weights` are those of `weight_keys`. Raises ValueError for a weight beyond float16.
    """
    casts = []
    inputs = {value.name for value in model.graph.input}
    for tensor in model.graph.initializer:
        if tensor.data_type != TensorProto.FLOAT or len(tensor.dims) < 2 or tensor.name in inputs:
            continue
        values = numpy_helper.to_array(tensor)
        with np.errstate(over="ignore"):  # an overflow is not equal to its original
            half = values.astype(np.float16)
        weight = weights.get(key(values))
        if weight and not np.isfinite(half).all():
            raise ValueError(f"a weight of {weight} is beyond float16 (65,504)")
        if weight or np.array_equal(half.astype(np.float32), values):
            name = tensor.name
            tensor.CopyFrom(numpy_helper.from_array(half, f"{name}_half"))
            casts.append(helper.make_node("Cast", [tensor.name], [name], to=TensorProto.FLOAT))
    nodes = [*casts, *model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model

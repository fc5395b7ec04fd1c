"""LoRA adapters (Hu et al. 2022): a pretrained weight plus a trained matrix of low rank."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

SCALE = 32.0
"""LoRA's alpha: the change is multiplied by alpha / r."""


class LoRA(nn.Module):
    """W (O, I) -> W + alpha / r B A, with A (r, I) and B (O, r). B is zero at first: so is the change."""

    def __init__(self, outputs: int, inputs: int, rank: int) -> None:
        super().__init__()
        self.scale = SCALE / rank
        self.down = nn.Parameter(torch.randn(rank, inputs) / inputs**0.5)
        self.up = nn.Parameter(torch.zeros(outputs, rank))

    def forward(self, weight: Tensor) -> Tensor:
        return weight + self.scale * (self.up @ self.down)


def add_lora(layers: Iterable[nn.Linear], rank: int) -> None:
    """Freeze the layers' matrices and add an adapter of rank `rank` to each."""
    for layer in layers:
        layer.weight.requires_grad_(False)
        adapter = LoRA(layer.out_features, layer.in_features, rank)
        parametrize.register_parametrization(layer, "weight", adapter)


def merge(module: nn.Module) -> None:
    """Add every adapter to its weight: the same function, without adapters."""
    for layer in module.modules():
        if parametrize.is_parametrized(layer, "weight"):
            parametrize.remove_parametrizations(layer, "weight")

"""A change of low rank against the two products that LoRA's equation (3) writes apart."""

import torch
from torch import nn

from heedful.models.lora import add_lora, merge

RANK, ALPHA = 3, 32


def test_it_adds_a_product_of_two_small_matrices() -> None:
    torch.manual_seed(0)
    layer, x = nn.Linear(7, 5), torch.randn(4, 7)
    weight, bias = layer.weight.detach().clone(), layer.bias.detach().clone()
    before = layer(x)
    add_lora([layer], RANK)
    assert torch.equal(layer(x), before)  # B is zero

    parts = dict(layer.named_parameters())
    down, up = (parts[f"parametrizations.weight.0.{name}"] for name in ("down", "up"))
    assert (down.shape, up.shape) == ((RANK, 7), (5, RANK))
    with torch.no_grad():
        up.copy_(torch.randn_like(up))
        down.copy_(torch.randn_like(down))
    expected = x @ weight.T + ALPHA / RANK * (x @ down.T) @ up.T + bias
    torch.testing.assert_close(layer(x), expected)

    layer(x).sum().backward()
    moved = {name for name, one in layer.named_parameters() if one.grad is not None}
    assert moved == {"bias", "parametrizations.weight.0.down", "parametrizations.weight.0.up"}

    merge(nn.Sequential(layer, nn.ReLU()))
    assert set(layer.state_dict()) == {"weight", "bias"}
    torch.testing.assert_close(layer(x), expected)

"""DiSAN and its baselines against the loop-form references."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from heedful.models.disan import MASKS, DirectionalAttention, MaskName
from heedful.models.registry import build
from heedful.models.sentence import Encoder
from tests.models.conftest import array, close, encoded, layers, linear, randomise
from tests.reference import disan as reference
from tests.reference.arithmetic import Array

DIM = 8
ALLOWS: dict[MaskName, Callable[[int, int], bool]] = {
    "forward": reference.forward_allows,
    "backward": reference.backward_allows,
    "diag-disabled": reference.diag_disabled_allows,
}


def block(module: nn.Module) -> reference.Block:
    w_h, b_h = linear(module, "hidden")
    w_1, _ = linear(module, "attended")
    w_2, b = linear(module, "reference")
    w_f1, _ = linear(module, "gate_attention")
    w_f2, b_f = linear(module, "gate_hidden")
    return reference.Block(w_h, b_h, w_1, w_2, b, w_f1, w_f2, b_f)


def gates(module: nn.Module) -> reference.Gates:
    return reference.Gates(*linear(module, "projection"), linear(module, "recurrent")[0])


def expected(name: str, model: Encoder, x: Array) -> Array:
    """The sentence vector of x (L, D) with the model's weights."""
    score = layers(model.get_submodule("pooling"))
    if name.startswith("disan"):
        blocks = (block(model.get_submodule("blocks.0")), block(model.get_submodule("blocks.1")))
        return reference.disan(x, blocks, score, direction=name == "disan")
    if name == "multi-head-s2t":
        query, key, value = (linear(model, part)[0] for part in ("query", "key", "value"))
        return reference.multi_head_s2t(x, query, key, value, score, heads=8)
    if name == "bi-lstm-s2t":
        forward, backward = (gates(model.get_submodule(f"directions.{i}")) for i in (0, 1))
        return reference.bi_lstm(x, forward, backward, score)
    return reference.pooled(x, score)


NAMES = (
    *("disan", "disan-no-direction", "word-additive", "word-s2t", "multi-head-s2t"),
    "bi-lstm-s2t",
)


@pytest.mark.parametrize("name", NAMES)
def test_encoder_is_the_references(name: str) -> None:
    rng = np.random.default_rng(0)
    model = build(name, {"dim": DIM})
    randomise(model, 0.7)
    for length in (4, 1, 9, 2):
        x = rng.normal(size=(length, DIM)) * 2
        close(encoded(model, x), expected(name, model, x))


@pytest.mark.parametrize("scale", [1, 1e4])
@pytest.mark.parametrize("name", sorted(MASKS))
@torch.no_grad()
def test_a_block_is_the_references_and_what_sees_nothing_is_zero(
    name: MaskName, scale: float
) -> None:
    """Scores are bounded by c, so their powers are: no maximum is taken off before them."""
    module = DirectionalAttention(DIM, name, dropout=0.5)
    randomise(module, 0.7)
    x = torch.randn(3, 7, DIM, dtype=torch.double) * scale
    lengths = [7, 1, 4]
    mask = torch.arange(7)[None] < torch.tensor(lengths)[:, None]
    got, attended = module(x, mask), module.token2token(x, mask)
    for row, length in enumerate(lengths):
        tokens = array(x[row, :length])
        known = reference.directional(tokens, block(module), ALLOWS[name])
        np.testing.assert_allclose(array(got[row, :length]), known, rtol=1e-9, atol=1e-9)
        for j in range(length):
            blind = not any(ALLOWS[name](i, j) for i in range(length))
            assert (attended[row, j] == 0).all() == blind


def test_weights_begin_as_the_papers() -> None:
    for module in build("disan", {}).modules():
        if isinstance(module, nn.Linear):
            bound = (6 / (module.in_features + module.out_features)) ** 0.5
            assert 0.99 * bound < module.weight.abs().max() <= bound
            assert module.bias is None or not module.bias.any()

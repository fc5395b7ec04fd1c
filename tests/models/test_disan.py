"""DiSAN and its baselines against the loop-form references, and their parameter counts."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from heedful.models.disan import MASKS, DirectionalAttention, MaskName
from heedful.models.pooling import AttentivePooling
from heedful.models.registry import ENCODERS, build
from heedful.models.sentence import Encoder
from tests.models.conftest import array, randomise
from tests.reference import disan as reference
from tests.reference.arithmetic import Array

DIM = 8
ALLOWS: dict[MaskName, Callable[[int, int], bool]] = {
    "forward": reference.forward_allows,
    "backward": reference.backward_allows,
    "diag-disabled": reference.diag_disabled_allows,
}


def encoder(name: str) -> Encoder:
    model = build(name, {"dim": DIM})
    randomise(model, 0.7)
    return model


def linear(module: nn.Module, name: str) -> tuple[Array, Array]:
    layer = module.get_submodule(name)
    assert isinstance(layer, nn.Linear)
    bias = np.zeros(layer.out_features) if layer.bias is None else array(layer.bias)
    return array(layer.weight), bias


def block(module: nn.Module) -> reference.Block:
    w_h, b_h = linear(module, "hidden")
    w_1, _ = linear(module, "attended")
    w_2, b = linear(module, "reference")
    w_f1, _ = linear(module, "gate_attention")
    w_f2, b_f = linear(module, "gate_hidden")
    return reference.Block(w_h, b_h, w_1, w_2, b, w_f1, w_f2, b_f)


def score(model: nn.Module) -> reference.Score:
    pooling = model.get_submodule("pooling")
    assert isinstance(pooling, AttentivePooling)
    return reference.Score(*linear(pooling, "score.1"), *linear(pooling, "score.4"))


def gates(module: nn.Module) -> reference.Gates:
    return reference.Gates(*linear(module, "projection"), linear(module, "recurrent")[0])


def expected(name: str, model: Encoder, x: Array) -> Array:
    """The sentence vector of x (L, D) with the model's weights."""
    if name.startswith("disan"):
        blocks = (block(model.get_submodule("blocks.0")), block(model.get_submodule("blocks.1")))
        return reference.disan(x, blocks, score(model), direction=name == "disan")
    if name == "multi-head-s2t":
        query, key, value = (linear(model, part)[0] for part in ("query", "key", "value"))
        return reference.multi_head(x, query, key, value, score(model), heads=8)
    if name == "bi-lstm-s2t":
        forward, backward = (gates(model.get_submodule(f"directions.{i}")) for i in (0, 1))
        return reference.bi_lstm(x, forward, backward, score(model))
    return reference.pooled(x, score(model))


NAMES = (
    *("disan", "disan-no-direction", "word-additive", "word-s2t", "multi-head-s2t"),
    "bi-lstm-s2t",
)


@pytest.mark.parametrize("name", NAMES)
@torch.no_grad()
def test_encoder_is_the_references_on_each_sentence_of_a_padded_batch(name: str) -> None:
    rng = np.random.default_rng(0)
    model = encoder(name)
    lengths = [4, 1, 9, 2, 6, 3]
    x = rng.normal(size=(6, 11, DIM)) * 2  # padding holds noise as well
    got = model(torch.tensor(x), torch.tensor(lengths))
    for row, length in enumerate(lengths):
        known = expected(name, model, x[row, :length])
        np.testing.assert_allclose(array(got[row]), known, atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", sorted(MASKS))
@torch.no_grad()
def test_a_block_is_the_references_and_what_sees_nothing_is_zero(name: MaskName) -> None:
    module = DirectionalAttention(DIM, name, dropout=0.5)
    randomise(module, 0.7)
    x = torch.randn(3, 7, DIM, dtype=torch.double)
    lengths = [7, 1, 4]
    mask = torch.arange(7)[None] < torch.tensor(lengths)[:, None]
    got, attended = module(x, mask), module.token2token(x, mask)
    for row, length in enumerate(lengths):
        tokens = array(x[row, :length])
        known = reference.directional(tokens, block(module), ALLOWS[name])
        np.testing.assert_allclose(array(got[row, :length]), known, atol=1e-9)
        for j in range(length):
            blind = not any(ALLOWS[name](i, j) for i in range(length))
            assert (attended[row, j] == 0).all() == blind


@torch.no_grad()
def test_large_scores_stay_finite_and_exact() -> None:
    """Scores are bounded by c, so their powers are: no maximum is taken off before them."""
    module = DirectionalAttention(DIM, "diag-disabled", dropout=0.0)
    randomise(module, 0.7)
    h = torch.randn(1, 5, DIM, dtype=torch.double) * 1e4
    got = module.token2token(h, torch.ones(1, 5, dtype=torch.bool))
    known = reference.token2token(array(h[0]), block(module), reference.diag_disabled_allows)
    np.testing.assert_allclose(array(got[0]), known, rtol=1e-9)


def test_heads_are_the_references() -> None:
    rng = np.random.default_rng(3)
    p, h = rng.normal(size=(2, 4, 10))
    entry = ENCODERS["disan"]
    nli = entry.nli(10, hidden=6).double().eval()
    single = entry.classification(10, hidden=6, classes=5).double().eval()
    logits, scores = nli(torch.tensor(p), torch.tensor(h)), single(torch.tensor(p))
    of_pairs, of_one = ([linear(one, f"layers.{i}") for i in (1, 4)] for one in (nli, single))
    for row in range(4):
        known = reference.nli_head(p[row], h[row], of_pairs)
        np.testing.assert_allclose(array(logits[row]), known, atol=1e-10)
        known = reference.head(p[row], of_one)
        np.testing.assert_allclose(array(scores[row]), known, atol=1e-10)


def test_weights_begin_as_the_papers() -> None:
    for module in build("disan", {}).modules():
        if isinstance(module, nn.Linear):
            bound = (6 / (module.in_features + module.out_features)) ** 0.5
            assert 0.99 * bound < module.weight.abs().max() <= bound
            assert module.bias is None or not module.bias.any()

"""DiSAN, DSA, LAMA and the baselines of their papers against the loop-form references; their sizes."""

import numpy as np
import pytest
import torch
from torch import nn

from heedful.models.disan import MASKS, DirectionalAttention, DiSAN, MaskName
from heedful.models.dsa import DSA, WordFeatures
from heedful.models.lama import LAMA, BiGRU
from heedful.models.registry import build
from heedful.models.sentence import Encoder
from tests.models.conftest import array, close, convolutions, encoded, layers, linear, randomise
from tests.reference import disan, dsa, lama
from tests.reference.arithmetic import Array, mean
from tools.encoders.average import Average
from tools.encoders.cnn_self_attention import CNNSelfAttention
from tools.encoders.disan_baselines import BiLSTMS2T, MultiHeadS2T
from tools.encoders.lama_baselines import SAN, BiGRUMax, CNNMax, Transformer

DIM, HIDDEN = 8, 5
DISANS = (
    *("disan", "disan-no-direction", "word-additive", "word-s2t", "multi-head-s2t"),
    "bi-lstm-s2t",
)


def block(module: nn.Module) -> disan.Block:
    w_h, b_h = linear(module, "hidden")
    w_1, _ = linear(module, "attended")
    w_2, b = linear(module, "reference")
    w_f1, _ = linear(module, "gate_attention")
    w_f2, b_f = linear(module, "gate_hidden")
    return disan.Block(w_h, b_h, w_1, w_2, b, w_f1, w_f2, b_f)


def gates(module: nn.Module) -> disan.Gates:
    return disan.Gates(*linear(module, "projection"), linear(module, "recurrent")[0])


def features(words: WordFeatures) -> dsa.Weights:
    m, size = words.shape
    matrix, bias = linear(words.projection)
    (compression,) = convolutions(words.cnn.compression)
    return dsa.Weights(
        [convolutions(block) for block in words.cnn.blocks],
        compression,
        list(zip(matrix.reshape(m, size, -1), bias.reshape(m, size), strict=True)),
    )


def gru(layer: nn.GRU, suffix: str) -> lama.GRU:
    """torch's update gate keeps where the paper's renews: 1 - sigmoid(a) = sigmoid(-a)."""
    kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    w, u, b_x, b_h = (array(layer.get_parameter(kind + suffix)) for kind in kinds)
    (w_r, w_z, w_h), (u_r, u_z, u_h) = np.split(w, 3), np.split(u, 3)
    b_r, b_z, _ = np.split(b_x + b_h, 3)
    return lama.GRU(
        -w_z, -u_z, -b_z, w_r, u_r, b_r, w_h, np.split(b_x, 3)[2], u_h, np.split(b_h, 3)[2]
    )


def annotations(words: BiGRU, x: Array) -> list[Array]:
    return lama.bi_gru(list(x), gru(words.layer, "_l0"), gru(words.layer, "_l0_reverse"))


def expected(model: Encoder, x: Array) -> Array:
    """The vector of one sentence x (L, D), with the model's weights."""
    words = list(x)
    match model:
        case DiSAN():
            blocks = block(model.blocks[0]), block(model.blocks[1])
            direction = "direction" in model.priors
            return disan.disan(x, blocks, layers(model.pooling), direction=direction)
        case MultiHeadS2T():
            query, key, value = (linear(model, part)[0] for part in ("query", "key", "value"))
            return disan.multi_head_s2t(x, query, key, value, layers(model.pooling), heads=8)
        case BiLSTMS2T():
            forward, backward = map(gates, model.directions)
            return disan.bi_lstm(x, forward, backward, layers(model.pooling))
        case CNNSelfAttention():
            score, vector = array(model.score.weight), array(model.vector.weight)[0]
            return dsa.static_encode(words, features(model.words), score, vector)
        case DSA():
            return dsa.encode(words, features(model.words), model.iterations)
        case LAMA():
            h, attention = annotations(model.words, x), model.attention
            heads = model.dim // (2 * HIDDEN)
            p = array(attention.context_factors.weight).reshape(heads, -1, DIM)
            q = array(attention.word_factors.weight).reshape(heads, -1, 2 * HIDDEN)
            c = mean(words) if model.context is None else array(model.context)
            return lama.embed(h, lama.attention(h, c, *linear(attention, "hidden"), p, q))
        case SAN():
            h = annotations(model.words, x)
            maps = lama.structured_attention(h, *map(array, model.attention.parameters()))
            return lama.embed(h, maps)
        case BiGRUMax():
            return np.array([max(one) for one in zip(*annotations(model.words, x), strict=True)])
        case CNNMax():
            return np.concatenate([lama.cnn_max(words, *one) for one in convolutions(model)])
        case Transformer():
            weights = lama.Transformer(
                linear(model, "project"),
                query=array(model.query.weight),
                key=array(model.key.weight),
                value=array(model.value.weight),
                output=array(model.output.weight),
                feed_forward=layers(model.feed_forward),
                norms=[[array(one) for one in norm.parameters()] for norm in model.norms],
            )
            return lama.transformer(words, weights, model.num_heads)
        case Average():
            return mean(words)
        case _:
            return disan.pooled(x, layers(model.get_submodule("pooling")))


@pytest.mark.parametrize(
    "model",
    [
        *(build(name, {"dim": DIM}) for name in DISANS),
        DSA(dim=DIM, size=11),
        DSA(dim=DIM, size=5, attentions=3),
        DSA(dim=DIM, size=11, iterations=1, layers=3),
        DSA(dim=DIM, size=11, iterations=4, layers=1),
        CNNSelfAttention(dim=DIM, size=9),
        *(
            LAMA(dim=DIM, hidden=HIDDEN, heads=heads, rank=rank, document_context=document)
            for heads, rank in ((5, 1), (1, 1), (3, 4))
            for document in (False, True)
        ),
        SAN(dim=DIM, hidden=HIDDEN, heads=3, size=6),
        BiGRUMax(dim=DIM, hidden=HIDDEN),
        CNNMax(dim=DIM, maps=4),
        Transformer(dim=DIM, size=12, heads=1),
        Transformer(dim=DIM, size=12, heads=3),
        Average(dim=DIM),
    ],
    ids=lambda model: type(model).__name__,
)
def test_encoder_is_the_references(model: Encoder) -> None:
    rng = np.random.default_rng(0)
    randomise(model)
    for length in (1, 2, 4, 9):
        x = rng.normal(size=(length, DIM))
        close(encoded(model, x), expected(model, x))


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
        known = disan.directional(tokens, block(module), disan.ALLOWS[name])
        np.testing.assert_allclose(array(got[row, :length]), known, rtol=1e-9, atol=1e-9)
        for j in range(length):
            blind = not any(disan.ALLOWS[name](i, j) for i in range(length))
            assert (attended[row, j] == 0).all() == blind


def test_disans_weights_begin_as_the_papers() -> None:
    for module in build("disan", {}).modules():
        if isinstance(module, nn.Linear):
            bound = (6 / (module.in_features + module.out_features)) ** 0.5
            assert 0.99 * bound < module.weight.abs().max() <= bound
            assert module.bias is None or not module.bias.any()


def count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def test_lamas_sizes_are_the_papers() -> None:
    """Section 3.3.2 and Figure 4: what grows with the heads, 2h = 100."""
    for heads in (1, 15, 40):
        attention, san = LAMA(heads=heads).attention, SAN(heads=heads)
        factors = (attention.context_factors, attention.word_factors)
        assert sum(map(count, factors)) == 2 * 100 * heads
        assert count(san.attention) == 100 * 512 + 512 * heads
    assert count(build("lama", {})) - count(build("lama-ctx", {})) == 100  # c
    assert count(build("bi-gru-max", {})) == 2 * 3 * (50 * 100 + 50 * 50 + 2 * 50)

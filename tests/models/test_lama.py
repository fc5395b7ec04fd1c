"""LAMA, SAN and the other baselines against the loop-form reference; their parameter counts."""

import numpy as np
import pytest
import torch
from torch import nn

from heedful.models.lama import LAMA, BiGRU, LowRankAttention
from heedful.models.registry import build
from heedful.models.sentence import Encoder
from tests.models.conftest import array, close, convolutions, encoded, layers, linear, randomise
from tests.reference import lama as reference
from tests.reference.arithmetic import Array, mean
from tools.encoders.average import Average
from tools.encoders.lama_baselines import SAN, BiGRUMax, CNNMax, Transformer

DIM, HIDDEN = 7, 4


def gru(layer: nn.GRU, suffix: str) -> reference.GRU:
    """torch's update gate keeps where the paper's renews: 1 - sigmoid(a) = sigmoid(-a)."""
    kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    w, u, b_x, b_h = (array(layer.get_parameter(kind + suffix)) for kind in kinds)
    (w_r, w_z, w_h), (u_r, u_z, u_h) = np.split(w, 3), np.split(u, 3)
    b_r, b_z, _ = np.split(b_x + b_h, 3)
    return reference.GRU(
        -w_z, -u_z, -b_z, w_r, u_r, b_r, w_h, np.split(b_x, 3)[2], u_h, np.split(b_h, 3)[2]
    )


def annotations(words: BiGRU, x: Array) -> list[Array]:
    return reference.bi_gru(list(x), gru(words.layer, "_l0"), gru(words.layer, "_l0_reverse"))


def expected(model: Encoder, x: Array) -> Array:
    """The vector of one sentence."""
    words = list(x)
    match model:
        case LAMA():
            h, attention = annotations(model.words, x), model.attention
            heads = model.dim // (2 * HIDDEN)
            p = array(attention.context_factors.weight).reshape(heads, -1, DIM)
            q = array(attention.word_factors.weight).reshape(heads, -1, 2 * HIDDEN)
            c = mean(words) if model.context is None else array(model.context)
            return reference.embed(h, reference.attention(h, c, *linear(attention, "hidden"), p, q))
        case SAN():
            h = annotations(model.words, x)
            maps = reference.structured_attention(h, *map(array, model.attention.parameters()))
            return reference.embed(h, maps)
        case BiGRUMax():
            return np.array([max(one) for one in zip(*annotations(model.words, x), strict=True)])
        case CNNMax():
            return np.concatenate([reference.cnn_max(words, *one) for one in convolutions(model)])
        case Transformer():
            weights = reference.Transformer(
                linear(model, "project"),
                query=array(model.query.weight),
                key=array(model.key.weight),
                value=array(model.value.weight),
                output=array(model.output.weight),
                feed_forward=layers(model.feed_forward),
                norms=[[array(one) for one in norm.parameters()] for norm in model.norms],
            )
            return reference.transformer(words, weights, model.num_heads)
        case _:
            return mean(words)


@pytest.mark.parametrize(
    "model",
    [
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
    for length in (1, 2, 3, 8):
        x = rng.normal(size=(length, DIM))
        close(encoded(model, x), expected(model, x))


def test_weights_begin_as_the_papers() -> None:
    torch.manual_seed(0)
    for parameter in LowRankAttention(4, 400, heads=1, rank=1).hidden.parameters():
        assert parameter.std().item() == pytest.approx(0.1, rel=0.1)  # section 3.2


def count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def test_sizes_are_the_papers() -> None:
    """Section 3.3.2 and Figure 4: what grows with the heads, 2h = 100."""
    for heads in (1, 15, 40):
        lama, san = LAMA(heads=heads), SAN(heads=heads)
        factors = (lama.attention.context_factors, lama.attention.word_factors)
        assert sum(map(count, factors)) == 2 * 100 * heads
        assert count(san.attention) == 100 * 512 + 512 * heads
    assert count(build("lama", {})) - count(build("lama-ctx", {})) == 100  # c
    assert count(build("bi-gru-max", {})) == 2 * 3 * (50 * 100 + 50 * 50 + 2 * 50)
    sizes = {
        **{"lama": 15 * 100, "lama-ctx": 15 * 100, "san": 30 * 100, "bi-gru-max": 100},
        **{"cnn-max": 300, "transformer": 1024, "average": 100},
    }
    assert {name: build(name, {}).dim for name in sizes} == sizes

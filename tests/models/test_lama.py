"""LAMA, SAN and the other baselines against the loop-form reference; their parameter counts."""

import numpy as np
import pytest
import torch
from torch import nn

from heedful.models.convolution import Convolution
from heedful.models.lama import LAMA, BiGRU, LowRankAttention
from heedful.models.registry import build
from heedful.models.sentence import Encoder
from tests.models.conftest import array, kernel_of, randomise
from tests.reference import lama as reference
from tests.reference.arithmetic import Array
from tools.encoders.average import Average
from tools.encoders.lama_baselines import SAN, BiGRUMax, CNNMax, Transformer

DIM, HIDDEN = 7, 4
LENGTHS = (1, 2, 3, 8)


def sentences() -> list[Array]:
    rng = np.random.default_rng(0)
    return [rng.normal(size=(length, DIM)) for length in LENGTHS]


def encode(model: Encoder) -> Array:
    """The sentences in one batch, noise on their padding, by a model of random weights."""
    randomise(model)
    x = np.random.default_rng(1).normal(size=(len(LENGTHS), 10, DIM)) * 3
    for row, vectors in enumerate(sentences()):
        x[row, : len(vectors)] = vectors
    return array(model(torch.tensor(x), torch.tensor(LENGTHS)))


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


@pytest.mark.parametrize("document_context", [False, True])
@pytest.mark.parametrize(("heads", "rank"), [(5, 1), (1, 1), (3, 4)])
def test_lama_is_the_references(heads: int, rank: int, document_context: bool) -> None:
    model = LAMA(dim=DIM, hidden=HIDDEN, heads=heads, rank=rank, document_context=document_context)
    got = encode(model)
    attention = model.attention
    p = array(attention.context_factors.weight).reshape(heads, rank, DIM)
    q = array(attention.word_factors.weight).reshape(heads, rank, 2 * HIDDEN)
    hidden = array(attention.hidden.weight), array(attention.hidden.bias)
    for row, x in zip(got, sentences(), strict=True):
        h = annotations(model.words, x)
        c = reference.mean(list(x)) if model.context is None else array(model.context)
        maps = reference.attention(h, c, *hidden, p, q)
        np.testing.assert_allclose(row, reference.embed(h, maps), atol=1e-5, rtol=0)


def expected(model: Encoder, x: Array) -> Array:
    """A baseline's vector of one sentence."""
    words = list(x)
    match model:
        case SAN():
            h = annotations(model.words, x)
            maps = reference.structured_attention(h, *map(array, model.attention.parameters()))
            return reference.embed(h, maps)
        case BiGRUMax():
            return np.array([max(one) for one in zip(*annotations(model.words, x), strict=True)])
        case CNNMax():
            layers = [one for one in model.modules() if isinstance(one, Convolution)]
            parts = [(kernel_of(one), array(one.bias)) for one in layers]
            return np.concatenate([reference.cnn_max(words, *part) for part in parts])
        case Transformer():
            weights = reference.Transformer(
                (array(model.project.weight), array(model.project.bias)),
                array(model.query.weight),
                array(model.key.weight),
                array(model.value.weight),
                array(model.output.weight),
                [array(parameter) for parameter in model.feed_forward.parameters()],
                [[array(parameter) for parameter in norm.parameters()] for norm in model.norms],
            )
            return reference.transformer(words, weights, model.num_heads)
        case _:
            return reference.mean(words)


@pytest.mark.parametrize(
    "model",
    [
        SAN(dim=DIM, hidden=HIDDEN, heads=3, size=6),
        BiGRUMax(dim=DIM, hidden=HIDDEN),
        CNNMax(dim=DIM, maps=4),
        Transformer(dim=DIM, size=12, heads=1),
        Transformer(dim=DIM, size=12, heads=3),
        Average(dim=DIM),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_baseline_is_the_references(model: Encoder) -> None:
    for row, x in zip(encode(model), sentences(), strict=True):
        np.testing.assert_allclose(row, expected(model, x), atol=1e-5, rtol=0)


def test_weights_begin_as_the_papers() -> None:
    torch.manual_seed(0)
    for parameter in LowRankAttention(4, 400, heads=1, rank=1).hidden.parameters():
        assert parameter.std().item() == pytest.approx(0.1, rel=0.1)  # section 3.2


def count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


@pytest.mark.parametrize("heads", [1, 15, 40])
def test_attention_parameters_are_the_papers(heads: int) -> None:
    """Section 3.3.2 and Figure 4: what grows with the heads, 2h = 100."""
    lama, san = LAMA(heads=heads), SAN(heads=heads)
    factors = (lama.attention.context_factors, lama.attention.word_factors)
    assert sum(map(count, factors)) == 2 * 100 * heads
    assert count(san.attention) == 100 * 512 + 512 * heads


def test_the_papers_sizes_are_the_defaults() -> None:
    lama = LAMA()
    assert count(lama.attention.context_factors) + count(lama.attention.word_factors) == 3_000
    assert count(lama) - count(build("lama-ctx", {})) == 100  # c
    sizes = {
        "lama": 15 * 100,
        "lama-ctx": 15 * 100,
        "san": 30 * 100,
        "bi-gru-max": 100,
        "cnn-max": 300,
        "transformer": 1024,
        "average": 100,
    }
    assert {name: build(name, {}).dim for name in sizes} == sizes
    assert count(build("bi-gru-max", {})) == 2 * 3 * (50 * 100 + 50 * 50 + 2 * 50)

"""DSA against the loop-form reference, and its dynamic weights."""

import numpy as np
import pytest
import torch
from torch import nn

from heedful.models.dsa import DSA, WordFeatures, dynamic_attention
from heedful.models.initialise import he
from heedful.models.masks import token_mask
from heedful.models.sentence import Encoder
from tests.models.conftest import array, close, convolutions, encoded, linear, randomise
from tests.reference import dsa as reference
from tests.reference.arithmetic import Array
from tools.encoders.cnn_self_attention import CNNSelfAttention

DIM = 7


def weights(words: WordFeatures) -> reference.Weights:
    m, size = words.shape
    matrix, bias = linear(words.projection)
    (compression,) = convolutions(words.cnn.compression)
    return reference.Weights(
        [convolutions(block) for block in words.cnn.blocks],
        compression,
        list(zip(matrix.reshape(m, size, -1), bias.reshape(m, size), strict=True)),
    )


def expected(model: Encoder, x: Array) -> Array:
    if isinstance(model, CNNSelfAttention):
        score, vector = array(model.score.weight), array(model.vector.weight)[0]
        return reference.static_encode(list(x), weights(model.words), score, vector)
    assert isinstance(model, DSA)
    return reference.encode(list(x), weights(model.words), model.iterations)


@pytest.mark.parametrize(
    "model",
    [
        DSA(dim=DIM, size=11),
        DSA(dim=DIM, size=5, attentions=3),
        DSA(dim=DIM, size=11, iterations=1, layers=3),
        DSA(dim=DIM, size=11, iterations=4, layers=1),
        CNNSelfAttention(dim=DIM, size=9),
    ],
    ids=lambda model: type(model).__name__,
)
def test_encoder_is_the_references(model: Encoder) -> None:
    rng = np.random.default_rng(0)
    randomise(model, 0.3)
    for length in (1, 2, 3, 6):
        x = rng.normal(size=(length, DIM))
        close(encoded(model, x), expected(model, x))


@pytest.mark.parametrize("iterations", [1, 2, 5])
def test_attention_is_algorithm_1_and_leaves_padding_out(iterations: int) -> None:
    rng = np.random.default_rng(iterations)
    x = rng.normal(size=(3, 2, 6, 5))
    lengths = [6, 1, 4]
    z, shares = dynamic_attention(torch.tensor(x), token_mask(torch.tensor(lengths), 6), iterations)
    for row, length in enumerate(lengths):
        assert shares[row, :, length:].abs().sum() == 0
        for j in range(2):
            vector, maps = reference.dynamic_attention(list(x[row, j, :length]), iterations)
            np.testing.assert_allclose(array(z[row, j]), vector, atol=1e-10)
            np.testing.assert_allclose(array(shares[row, j, :length]), maps, atol=1e-10)


def test_he_keeps_the_variance_of_what_dropout_leaves() -> None:
    torch.manual_seed(0)
    layer = nn.Conv1d(100, 400, 5)
    he(layer, dropout=0.2)
    assert layer.bias is not None
    assert layer.bias.abs().max() == 0
    expected = (2 / (1 + 0.01**2) / 500 * 0.8) ** 0.5
    assert layer.weight.std().item() == pytest.approx(expected, rel=0.02)

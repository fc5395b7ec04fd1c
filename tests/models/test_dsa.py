"""DSA against the loop-form reference, its parameter counts, its heads and its dynamic weights."""

import numpy as np
import pytest
import torch
from torch import nn

from heedful.models.convolution import Convolution
from heedful.models.dsa import DSA, WordFeatures, dynamic_attention
from heedful.models.heads import BatchNormClassificationHead, BatchNormNLIHead
from heedful.models.initialise import he
from heedful.models.masks import token_mask
from tests.models.conftest import array, kernel_of, randomise
from tests.reference import dsa as reference
from tests.reference.arithmetic import Array
from tools.encoders.cnn_self_attention import CNNSelfAttention

DIM = 7


def single(**config: int) -> DSA:
    model = DSA(dim=DIM, **{"size": 11, **config})
    randomise(model, 0.3)
    return model


def convolutions(block: nn.Module) -> list[reference.Convolution]:
    """In the order they are applied."""
    found = [module for module in block.modules() if isinstance(module, Convolution)]
    return [reference.Convolution(kernel_of(layer), array(layer.bias)) for layer in found]


def weights(words: WordFeatures) -> reference.Weights:
    m, size = words.shape
    matrices = array(words.projection.weight).reshape(m, size, -1)
    biases = array(words.projection.bias).reshape(m, size)
    (compression,) = convolutions(words.cnn.compression)
    return reference.Weights(
        [convolutions(block) for block in words.cnn.blocks],
        compression,
        list(zip(matrices, biases, strict=True)),
    )


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"attentions": 3, "size": 5},
        {"iterations": 1, "layers": 3},
        {"iterations": 4, "layers": 1},
    ],
    ids=str,
)
def test_encoder_is_the_references(config: dict[str, int]) -> None:
    rng = np.random.default_rng(0)
    model = single(**config)
    for length in (1, 2, 3, 6):
        x = rng.normal(size=(length, DIM))
        got = model(torch.tensor(x)[None], torch.tensor([length]))
        expected = reference.encode(list(x), weights(model.words), config.get("iterations", 2))
        np.testing.assert_allclose(array(got[0]), expected, atol=1e-5, rtol=0)


def test_static_self_attention_is_the_references() -> None:
    rng = np.random.default_rng(1)
    model = CNNSelfAttention(dim=DIM, size=9)
    randomise(model, 0.3)
    score, vector = array(model.score.weight), array(model.vector.weight)[0]
    for length in (1, 2, 6):
        x = rng.normal(size=(length, DIM))
        got = model(torch.tensor(x)[None], torch.tensor([length]))
        expected = reference.static_encode(list(x), weights(model.words), score, vector)
        np.testing.assert_allclose(array(got[0]), expected, atol=1e-5, rtol=0)


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


def hidden_layers(head: nn.Module) -> tuple[list[reference.Hidden], Array, Array]:
    norms = [module for module in head.modules() if isinstance(module, nn.BatchNorm1d)]
    *linear, last = [module for module in head.modules() if isinstance(module, nn.Linear)]
    hidden = []
    for norm, layer in zip(norms, linear, strict=True):
        assert norm.running_mean is not None
        assert norm.running_var is not None
        values = (norm.running_mean, norm.running_var, norm.weight, norm.bias)
        hidden.append(reference.Hidden(*map(array, (*values, layer.weight, layer.bias))))
    return hidden, array(last.weight), array(last.bias)


def test_heads_are_the_references() -> None:
    rng = np.random.default_rng(5)
    p, h = rng.normal(size=(2, 4, 6))
    nli = BatchNormNLIHead(6, hidden=5).double().eval()
    single_sentence = BatchNormClassificationHead(6, classes=2, hidden=5).double().eval()
    randomise(nli, 0.3)
    randomise(single_sentence, 0.3)
    logits = array(nli(torch.tensor(p), torch.tensor(h)))
    scores = array(single_sentence(torch.tensor(p)))
    for row in range(4):
        features = reference.matching(p[row], h[row])
        expected = reference.head(features, *hidden_layers(nli))
        np.testing.assert_allclose(logits[row], expected, atol=1e-10)
        expected = reference.head(p[row], *hidden_layers(single_sentence))
        np.testing.assert_allclose(scores[row], expected, atol=1e-10)
    assert len(hidden_layers(nli)[0]) == 2
    assert len(hidden_layers(single_sentence)[0]) == 1


@pytest.mark.parametrize(("kernel", "padding"), [(1, 0), (3, 1), (5, 2), (4, 3)])
def test_a_product_is_the_convolution(kernel: int, padding: int) -> None:
    torch.manual_seed(0)
    layer, x = nn.Conv1d(6, 5, kernel, padding=padding), torch.randn(3, 6, 9)
    torch.testing.assert_close(Convolution(layer)(x), layer(x))


def test_he_keeps_the_variance_of_what_dropout_leaves() -> None:
    torch.manual_seed(0)
    layer = nn.Conv1d(100, 400, 5)
    he(layer, dropout=0.2)
    assert layer.bias is not None
    assert layer.bias.abs().max() == 0
    expected = (2 / (1 + 0.01**2) / 500 * 0.8) ** 0.5
    assert layer.weight.std().item() == pytest.approx(expected, rel=0.02)

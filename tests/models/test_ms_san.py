"""MS-SAN, with its priors and with relative positions, against the loop-form references; its sizes."""

from dataclasses import asdict
from itertools import product

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from heedful.models.heads import ClassificationHead, NLIHead
from heedful.models.ms_san import MSSAN
from heedful.models.registry import build, summary
from heedful.text.arrays import Ints
from tests.forests import BALLGAME_HEADS, forest, forests
from tests.models.conftest import array, randomise
from tests.reference import ms_san as reference
from tests.reference import relative
from tests.reference.arithmetic import Array
from tools.encoders.ms_san_sep import ms_san_sep
from tools.encoders.relative import Shaw, TransformerXL

PRIORS = [reference.Priors(*switches) for switches in product((True, False), repeat=3)]
DIM, HIDDEN = 12, 7


def encoder(priors: reference.Priors, heads: int = 6) -> MSSAN:
    model = MSSAN(dim=DIM, heads=heads, hidden=HIDDEN, max_tokens=32, **asdict(priors))
    randomise(model)
    return model


def feed_forward_weights(layers: nn.Module) -> reference.FeedForward:
    first, _, second = layers.children()
    return reference.FeedForward(*map(array, (*first.parameters(), *second.parameters())))


def weights(model: MSSAN) -> reference.Weights:
    attention, gate = model.attention, model.gate
    return reference.Weights(
        query=array(attention.query.weight),
        key=array(attention.key.weight),
        value=array(attention.value.weight),
        output=array(attention.output.weight),
        w_i=array(gate.project_input.weight),
        w_o=array(gate.project_output.weight),
        w_1=array(gate.gate_input.weight),
        w_2=array(gate.gate_output.weight),
        b=array(gate.gate_output.bias),
        feed_forward=feed_forward_weights(model.feed_forward),
        gain=array(model.norm.weight),
        shift=array(model.norm.bias),
        pooling=feed_forward_weights(model.pooling.score),
    )


def one(values: npt.NDArray[np.generic]) -> torch.Tensor:
    return torch.tensor(values)[None]


@pytest.mark.parametrize("priors", PRIORS, ids=str)
@pytest.mark.parametrize("heads", [6, 12])
def test_encoder_is_the_references(priors: reference.Priors, heads: int) -> None:
    rng = np.random.default_rng(heads)
    model = encoder(priors, heads)
    known = weights(model)
    for length in (1, 2, 3, 5, 9, 14):
        x, tree = rng.normal(size=(length, DIM)), forest(rng, length, roots=0.2)
        alpha = rng.uniform(0, 2)
        got = model(one(x), torch.tensor([length]), one(tree), torch.tensor(alpha))
        expected = reference.encode(x, known, tree.tolist(), heads, priors, alpha)
        np.testing.assert_allclose(array(got[0]), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("priors", PRIORS, ids=str)
def test_each_head_attends_as_the_references(priors: reference.Priors) -> None:
    rng = np.random.default_rng(2)
    model = encoder(priors)
    x, alpha = rng.normal(size=(8, DIM)), 0.7
    mask = torch.ones(1, 8, dtype=torch.bool)
    attention, governors = model.attention, one(BALLGAME_HEADS)
    maps = attention.weights(one(x), mask, governors, torch.tensor(alpha))
    attended = attention(one(x), mask, governors, torch.tensor(alpha))[0]
    expected, expected_maps = reference.attention(
        x, weights(model), BALLGAME_HEADS.tolist(), 6, priors, alpha
    )
    np.testing.assert_allclose(array(maps[0].flatten(0, 1)), expected_maps, atol=1e-5, rtol=0)
    np.testing.assert_allclose(array(attended[0]), expected, atol=1e-5, rtol=0)


def test_a_skip_is_the_words_mean_by_learned_weights() -> None:
    """After the pooled states stands the sum over words of exp(w x + b) x over the sum of exp(w x + b)."""
    rng = np.random.default_rng(6)
    model = MSSAN(dim=DIM, hidden=HIDDEN, dependency=False, skip=True, max_tokens=32)
    randomise(model)
    plain = MSSAN(dim=DIM, hidden=HIDDEN, dependency=False, max_tokens=32).double().eval()
    plain.load_state_dict({k: v for k, v in model.state_dict().items() if "words" not in k})
    x, lengths, alpha = torch.tensor(rng.normal(size=(3, 5, DIM))), [5, 1, 3], torch.tensor(1.0)
    got = model(x, torch.tensor(lengths), None, alpha)
    assert got.shape == (3, model.dim)
    torch.testing.assert_close(
        got[:, : plain.dim], plain(x, torch.tensor(lengths), None, alpha), rtol=0, atol=0
    )
    assert model.words is not None
    weight, bias = (array(one).ravel() for one in model.words.score.parameters())
    for row, length in enumerate(lengths):
        tokens = array(x[row, :length])
        shares = [np.exp(weight @ token + bias[0]) for token in tokens]
        mean = sum(share * token for share, token in zip(shares, tokens, strict=True)) / sum(shares)
        np.testing.assert_allclose(array(got[row, plain.dim :]), mean, atol=1e-10)
    shown = model.explain(x, torch.tensor(lengths), None, alpha).pooling["words"]
    np.testing.assert_allclose(array(shown.sum(-1)), 1, atol=1e-10)


@settings(max_examples=20)
@given(forests(), st.booleans(), st.booleans(), st.integers(0), st.floats(0, 2))
def test_sep_is_a_forward_and_a_backward_reference(
    tree: Ints, word: bool, dependency: bool, seed: int, alpha: float
) -> None:
    model = ms_san_sep(dim=DIM, hidden=HIDDEN, word=word, dependency=dependency, max_tokens=32)
    randomise(model)
    x = np.random.default_rng(seed).normal(size=(len(tree), DIM))
    expected = []
    for part, way in zip(model.encoders, ("forward", "backward"), strict=True):
        assert isinstance(part, MSSAN)
        priors = reference.Priors(way, word, dependency)
        expected.append(reference.encode(x, weights(part), tree.tolist(), 6, priors, alpha))
    got = model(one(x), torch.tensor([len(x)]), heads=one(tree), alpha=torch.tensor(alpha))
    np.testing.assert_allclose(array(got[0]), np.concatenate(expected), atol=1e-5, rtol=0)


def layers(head: nn.Module) -> list[tuple[Array, Array]]:
    linear = [module for module in head.modules() if isinstance(module, nn.Linear)]
    return [(array(layer.weight), array(layer.bias)) for layer in linear]


def test_heads_are_the_references() -> None:
    rng = np.random.default_rng(6)
    p, h = rng.normal(size=(2, 4, 10))
    nli = NLIHead(10, hidden=6, dropout=0.5).double().eval()
    single = ClassificationHead(10, hidden=6, classes=5, dropout=0.5).double().eval()
    logits, scores = nli(torch.tensor(p), torch.tensor(h)), single(torch.tensor(p))
    assert logits.shape == (4, 3)
    assert scores.shape == (4, 5)
    for row in range(4):
        known = reference.nli_head(p[row], h[row], layers(nli))
        np.testing.assert_allclose(array(logits[row]), known, atol=1e-10)
        known = reference.perceptron(p[row], layers(single))
        np.testing.assert_allclose(array(scores[row]), known, atol=1e-10)


NAMES = {"shaw": Shaw, "transformer-xl": TransformerXL}
LONGEST = 24
"""Sentences of `forests`: beyond the distance that Shaw clips at."""
DIRECTIONS = (True, False, "forward", "backward")


def relative_encoder(name: str, direction: bool | str, *, masks: bool = False) -> MSSAN:
    priors = {"direction": direction, "word": masks, "dependency": masks}
    sizes = {"dim": DIM, "hidden": HIDDEN, "max_tokens": LONGEST}
    model = MSSAN(positions=NAMES[name], **priors, **sizes)  # type: ignore[arg-type]
    randomise(model)
    return model


def positions(model: MSSAN) -> relative.Positions:
    """The weights of the model's relative positions, its heads in one row."""
    found = model.attention.positions
    if isinstance(found, Shaw):
        keys, values = (array(w.flatten(0, 1)) for w in (found.keys, found.values))
        return relative.Shaw(keys, values, clip=16)
    assert isinstance(found, TransformerXL)
    u, v = (array(w.flatten(0, -2)) for w in (found.content_bias, found.position_bias))
    return relative.TransformerXL(array(found.relative.weight), u, v)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=20)
@given(
    forests(LONGEST), st.sampled_from(DIRECTIONS), st.booleans(), st.integers(0), st.floats(0, 2)
)
def test_relative_positions_are_the_references(
    name: str, tree: Ints, direction: bool | str, masks: bool, seed: int, alpha: float
) -> None:
    model = relative_encoder(name, direction, masks=masks)
    x = np.random.default_rng(seed).normal(size=(len(tree), DIM))
    priors = reference.Priors(direction, masks, masks)
    expected = reference.encode(
        x, weights(model), tree.tolist(), 6, priors, alpha, positions(model)
    )
    got = model(one(x), torch.tensor([len(x)]), one(tree), torch.tensor(alpha))
    np.testing.assert_allclose(array(got[0]), expected, atol=1e-5, rtol=0)


def test_parameters_of_relative_positions() -> None:
    learnt = {
        "shaw": 2 * 6 * 33 * 50,  # a^K and a^V: heads, distances, features of a head
        "transformer-xl": 300 * 300 + 2 * 300,  # W_kR; u and v
    }
    for name, more in learnt.items():
        for registered in (f"ms-san-{name}", f"ms-san-direction-{name}"):
            encoder = build(registered, {})
            assert (encoder.dim, encoder.inputs) == (600, ())
            assert summary(registered).encoder == 1_082_100 + more

"""What every encoder of the registry must keep and what it says of itself: a new one is tested by being registered."""

import numpy as np
import pytest
import torch
from torch import Tensor

from heedful.models.pooling import max_share
from heedful.models.registry import ENCODERS, build
from heedful.models.sentence import Encoder, Explanation
from tests.forests import chain, forest, star

DIM = 24
SMALLER = {"transformer": {"size": 32, "heads": 4}}
"""Settings of encoders whose own sizes would keep the processor busy for minutes."""

each_encoder = pytest.mark.parametrize("name", sorted(ENCODERS))


def encoder(name: str) -> Encoder:
    torch.manual_seed(0)
    model = build(name, {"dim": DIM, **SMALLER.get(name, {})}).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if not parameter.any():  # a bias of zero would hide that padding is read
                parameter.normal_(std=0.1)
    return model


def sentence(rng: np.random.Generator, length: int) -> tuple[Tensor, Tensor]:
    x = torch.tensor(rng.normal(size=(length, DIM)), dtype=torch.float32)
    return x, torch.tensor(forest(rng, length))


def structure(model: Encoder, x: Tensor, heads: Tensor) -> dict[str, Tensor]:
    """What it reads of the sentences x (B, L, D) beside their words."""
    known = {"heads": heads, "alpha": torch.tensor(0.8), "cls": x[:, 0] * 2}
    return {key: known[key] for key in model.inputs}


def run(model: Encoder, x: Tensor, lengths: list[int], heads: Tensor) -> Tensor:
    vectors: Tensor = model(x, torch.tensor(lengths), **structure(model, x, heads))
    return vectors


def alone(model: Encoder, x: Tensor, heads: Tensor) -> Tensor:
    return run(model, x[None], [len(x)], heads[None])[0]


def batch(
    sentences: list[tuple[Tensor, Tensor]], rng: np.random.Generator | None, extra: int = 0
) -> tuple[Tensor, list[int], Tensor]:
    """Padded to the longest and `extra` more; padding is zero, or noise where `rng` is given."""
    lengths = [len(x) for x, _ in sentences]
    longest = max(lengths) + extra
    x = torch.zeros(len(sentences), longest, DIM)
    heads = torch.arange(longest).repeat(len(sentences), 1)
    if rng is not None:
        x = torch.tensor(rng.normal(size=x.shape) * 20, dtype=torch.float32)
        heads = torch.tensor(rng.integers(0, longest, heads.shape))
    for row, (vectors, governors) in enumerate(sentences):
        x[row, : len(vectors)] = vectors
        heads[row, : len(vectors)] = governors
    return x, lengths, heads


@each_encoder
@torch.no_grad()
@pytest.mark.parametrize("extra", [None, 0, 1, 4, 40])
def test_neither_the_batch_nor_its_padding_matters(name: str, extra: int | None) -> None:
    """Zeros behind the shorter sentences, or noise behind all of them."""
    rng = np.random.default_rng(extra)
    model = encoder(name)
    sentences = [sentence(rng, length) for length in (5, 1, 17, 2, 30, 3, 17)]
    padding = batch(sentences, None) if extra is None else batch(sentences, rng, extra)
    together = run(model, *padding)
    assert together.shape == (7, model.dim)
    for row, (x, heads) in zip(together, sentences, strict=True):
        torch.testing.assert_close(row, alone(model, x, heads), atol=1e-5, rtol=0)


@each_encoder
@torch.no_grad()
def test_extreme_lengths_and_word_vectors_are_finite(name: str) -> None:
    rng = np.random.default_rng(2)
    model = encoder(name)
    for length in (1, 256):
        x, _ = sentence(rng, length)
        for heads in (chain(length), star(length), np.arange(length)):
            assert alone(model, x, torch.tensor(heads)).isfinite().all()
    for scale in (0.0, 1e-30, 1e4):
        assert alone(model, x[:6] * scale, torch.tensor(star(6))).isfinite().all()


@each_encoder
def test_gradients_reach_every_parameter_and_token_and_no_padding(name: str) -> None:
    rng = np.random.default_rng(4)
    model = encoder(name).train()
    x, lengths, heads = batch([sentence(rng, length) for length in (1, 6, 13, 20)], None)
    vectors = run(model, x.requires_grad_(), lengths, heads)  # an average has no parameter
    pull = torch.randn(vectors.shape, generator=torch.Generator().manual_seed(1))
    (vectors * pull).sum().backward()
    for key, parameter in model.named_parameters():
        assert parameter.grad is not None, key
        assert parameter.grad.isfinite().all(), key
        assert parameter.grad.abs().max() > 0, key
    assert x.grad is not None
    for row, length in enumerate(lengths):
        reached = x.grad[row, :length].abs().amax(-1) > 0
        assert reached.all() or length > 6  # of more words a maximum may leave some out
        assert reached.any()
        assert not x.grad[row, length:].any()


@each_encoder
def test_an_unknown_setting_is_refused_by_name(name: str) -> None:
    with pytest.raises(ValueError, match=f"encoder {name}: .*'deepness'"):
        build(name, {"deepness": 3})


def explain(
    model: Encoder, x: Tensor, heads: Tensor, *, length: int | None = None, **switches: bool
) -> Explanation:
    """The explanation of the one sentence x (L, D), of which `length` tokens are no padding."""
    off = {name: torch.tensor(on) for name, on in switches.items()}
    lengths = torch.tensor([length or len(x)])
    return model.explain(x[None], lengths, **structure(model, x[None], heads[None]), **off)


@torch.no_grad()
@pytest.mark.parametrize("length", [1, 2, 9])
@each_encoder
def test_weights_are_weights_the_vector_is_forwards_and_padding_gets_nothing(
    name: str, length: int
) -> None:
    model = encoder(name)
    x, heads = sentence(np.random.default_rng(length), length)
    found = explain(model, x, heads)
    vector = run(model, x[None], [length], heads[None])
    torch.testing.assert_close(found.sentence, vector, atol=1e-6, rtol=0)
    assert found.states.shape[:2] == (1, length)
    assert found.pooling
    for weights in found.pooling.values():
        assert weights.shape == (1, length)
        assert weights.min() >= 0
        torch.testing.assert_close(weights.sum(-1), torch.ones(1))
    for title, weights in found.maps.items():
        assert weights.shape in ((1, length, length), (1, 1, length)), title
        assert weights.min() >= 0
        sees = torch.ones(weights.shape[:2])
        if name.startswith("disan"):  # a token with nothing to attend to
            sees = (weights.sum(-1) > 0).float()
            assert length - sees.sum() <= 1
        torch.testing.assert_close(weights.sum(-1), sees)
    for weights in found.gate.values():
        assert weights.shape == (1, length)
        assert 0 < weights.min() <= weights.max() < 1

    padding = torch.full((3, DIM), 7.0)
    governors = torch.cat([heads, torch.arange(length, length + 3)])
    padded = explain(model, torch.cat([x, padding]), governors, length=length)
    for kind in ("pooling", "maps", "gate"):
        expected, wider = getattr(found, kind), getattr(padded, kind)
        assert list(wider) == list(expected)
        for title, weights in expected.items():
            inside = wider[title]
            if inside.ndim == 3 and inside.shape[1] > 1:  # the padding's own rows
                inside = inside[:, :length]
            torch.testing.assert_close(inside[..., :length], weights, atol=1e-5, rtol=0)
            if kind != "gate":
                assert not inside[..., length:].any(), title


@torch.no_grad()
@pytest.mark.parametrize("prior", ["direction", "word", "dependency"])
def test_a_prior_switched_off_is_the_encoder_without_it(prior: str) -> None:
    """By weights alone: the encoder without the prior has the same ones."""
    names = [name for name in ENCODERS if prior in encoder(name).priors]
    assert names
    for name in names:
        model = encoder(name)
        without = build(name.replace("disan", "disan-no-direction"), {"dim": DIM}
                        if name == "disan" else {"dim": DIM, prior: False}).eval()  # fmt: skip
        without.load_state_dict(model.state_dict())
        x, heads = sentence(np.random.default_rng(9), 9)
        full, off = explain(model, x, heads), explain(model, x, heads, **{prior: False})
        expected = explain(without, x, heads)
        torch.testing.assert_close(off.sentence, expected.sentence, atol=1e-6, rtol=0)
        for weights, known in zip(off.maps.values(), expected.maps.values(), strict=True):
            torch.testing.assert_close(weights, known, atol=1e-6, rtol=0)
        on = explain(model, x, heads, **{prior: True})
        torch.testing.assert_close(on.sentence, full.sentence, atol=0, rtol=0)
        assert (off.sentence - full.sentence).abs().max() > 1e-3


@torch.no_grad()
def test_each_feature_of_a_maximum_is_counted_once() -> None:
    x = torch.tensor([[3.0, 0.0, 1.0, 5.0], [2.0, 0.0, 4.0, 1.0], [1.0, 0.0, 0.0, 2.0]])
    share = max_share(x[None], torch.ones(1, 3, dtype=torch.bool))
    third = 1 / 3  # of the second feature, which all three tokens have alike
    expected = torch.tensor([[2 + third, 1 + third, third]]) / 4
    torch.testing.assert_close(share, expected)


@torch.no_grad()
def test_dsa_tells_each_attention_at_each_iteration() -> None:
    x, heads = sentence(np.random.default_rng(5), 5)
    model = build("dsa", {"dim": DIM, "attentions": 2, "size": 8, "iterations": 3}).eval()
    found = explain(model, x, heads)
    assert list(found.maps) == [f"attention {j}, iteration {i}" for j in (1, 2) for i in (1, 2, 3)]
    torch.testing.assert_close(found.maps["attention 1, iteration 1"], torch.full((1, 1, 5), 0.2))
    last = [found.maps[f"attention {j}, iteration 3"] for j in (1, 2)]
    torch.testing.assert_close(found.pooling["last iteration"], torch.cat(last).mean(0))

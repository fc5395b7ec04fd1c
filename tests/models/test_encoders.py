"""What every encoder of the registry must keep: a new one is tested by being registered."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from heedful.models.registry import ENCODERS, build
from tests.forests import chain, forest, star

DIM = 24
SMALLER = {"transformer": {"size": 32, "heads": 4}}
"""Settings of encoders whose own sizes would keep the processor busy for minutes."""

pytestmark = pytest.mark.parametrize("name", sorted(ENCODERS))


def encoder(name: str) -> nn.Module:
    torch.manual_seed(0)
    return build(name, {"dim": DIM, **SMALLER.get(name, {})}).eval()


def sentence(rng: np.random.Generator, length: int) -> tuple[Tensor, Tensor]:
    x = torch.tensor(rng.normal(size=(length, DIM)), dtype=torch.float32)
    return x, torch.tensor(forest(rng, length))


def run(model: nn.Module, x: Tensor, lengths: list[int], heads: Tensor) -> Tensor:
    structure = {"heads": heads, "alpha": torch.tensor(0.8), "cls": x[:, 0] * 2}
    inputs: tuple[str, ...] = model.inputs  # type: ignore[assignment]  # nn.Module hides it
    vectors: Tensor = model(x, torch.tensor(lengths), **{key: structure[key] for key in inputs})
    return vectors


def alone(model: nn.Module, x: Tensor, heads: Tensor) -> Tensor:
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
        assert (x.grad[row, :length].abs().amax(-1) > 0).all()
        assert not x.grad[row, length:].any()


def test_an_unknown_setting_is_refused_by_name(name: str) -> None:
    with pytest.raises(ValueError, match=f"encoder {name}: .*'deepness'"):
        build(name, {"deepness": 3})

"""What every encoder of the registry says of itself: a new one is tested by being registered."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from heedful.models.pooling import max_share
from heedful.models.registry import ENCODERS, build
from heedful.models.sentence import Explanation
from tests.forests import forest
from tests.models.test_encoders import DIM, encoder, run

PRIORS = ("direction", "word", "dependency")


def explain(
    model: nn.Module, x: Tensor, heads: Tensor, *, length: int | None = None, **switches: bool
) -> Explanation:
    """The explanation of the one sentence x (L, D), of which `length` tokens are no padding."""
    structure = {"heads": heads[None], "alpha": torch.tensor(0.8), "cls": x[None, 0] * 2}
    read = {name: structure[name] for name in model.inputs}  # type: ignore[union-attr]
    explanation: Explanation = model.explain(  # type: ignore[operator]  # nn.Module hides both
        x[None],
        torch.tensor([length or len(x)]),
        **read,
        **{name: torch.tensor(on) for name, on in switches.items()},
    )
    return explanation


def sentence(length: int) -> tuple[Tensor, Tensor]:
    rng = np.random.default_rng(length)
    return torch.tensor(rng.normal(size=(length, DIM)), dtype=torch.float32), torch.tensor(
        forest(rng, length)
    )


@torch.no_grad()
@pytest.mark.parametrize("length", [1, 2, 9])
@pytest.mark.parametrize("name", sorted(ENCODERS))
def test_weights_are_weights_the_vector_is_forwards_and_padding_gets_nothing(
    name: str, length: int
) -> None:
    model = encoder(name)
    x, heads = sentence(length)
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
@pytest.mark.parametrize("prior", PRIORS)
def test_a_prior_switched_off_is_the_encoder_without_it(prior: str) -> None:
    """By weights alone: the encoder without the prior has the same ones."""
    names = [name for name in ENCODERS if prior in encoder(name).priors]  # type: ignore[operator]
    assert names
    for name in names:
        model = encoder(name)
        without = build(name.replace("disan", "disan-no-direction"), {"dim": DIM}
                        if name == "disan" else {"dim": DIM, prior: False}).eval()  # fmt: skip
        without.load_state_dict(model.state_dict())
        x, heads = sentence(9)
        full, off = explain(model, x, heads), explain(model, x, heads, **{prior: False})
        expected = explain(without, x, heads)
        torch.testing.assert_close(off.sentence, expected.sentence, atol=1e-6, rtol=0)
        for weights, known in zip(off.maps.values(), expected.maps.values(), strict=True):
            torch.testing.assert_close(weights, known, atol=1e-6, rtol=0)
        on = explain(model, x, heads, **{prior: True})
        torch.testing.assert_close(on.sentence, full.sentence, atol=0, rtol=0)
        assert (off.sentence - full.sentence).abs().max() > 1e-3


@torch.no_grad()
def test_ms_san_names_its_heads() -> None:
    assert encoder("ms-san").attention.names() == [  # type: ignore[union-attr, operator]
        f"{direction}, {kind} distance".replace("none distance", "no distance")
        for direction in ("forward", "backward")
        for kind in ("word", "dependency", "none")
    ]
    twelve = build("ms-san", {"dim": DIM, "heads": 12, "word": False})
    assert twelve.attention.names()[:3] == [  # type: ignore[union-attr, operator]
        "forward, no distance (1)",
        "forward, dependency distance (1)",
        "forward, no distance (2)",
    ]


@torch.no_grad()
def test_each_feature_of_a_maximum_is_counted_once() -> None:
    x = torch.tensor([[3.0, 0.0, 1.0, 5.0], [2.0, 0.0, 4.0, 1.0], [1.0, 0.0, 0.0, 2.0]])
    share = max_share(x[None], torch.ones(1, 3, dtype=torch.bool))
    third = 1 / 3  # of the second feature, which all three tokens have alike
    expected = torch.tensor([[2 + third, 1 + third, third]]) / 4
    torch.testing.assert_close(share, expected)


@torch.no_grad()
def test_dsa_tells_each_attention_at_each_iteration() -> None:
    x, heads = sentence(5)
    model = build("dsa", {"dim": DIM, "attentions": 2, "size": 8, "iterations": 3}).eval()
    found = explain(model, x, heads)
    assert list(found.maps) == [f"attention {j}, iteration {i}" for j in (1, 2) for i in (1, 2, 3)]
    torch.testing.assert_close(found.maps["attention 1, iteration 1"], torch.full((1, 1, 5), 0.2))
    last = [found.maps[f"attention {j}, iteration 3"] for j in (1, 2)]
    torch.testing.assert_close(found.pooling["last iteration"], torch.cat(last).mean(0))

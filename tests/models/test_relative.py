"""MS-SAN with relative positions against the loop-form references, and its sizes."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.models.ms_san import MSSAN
from heedful.models.registry import build, summary
from heedful.text.arrays import Ints
from tests.forests import forests
from tests.models.conftest import array, randomise
from tests.models.test_ms_san import DIM, HIDDEN, one, weights
from tests.reference import ms_san as reference
from tests.reference import relative
from tools.encoders.relative import Shaw, TransformerXL

NAMES = {"shaw": Shaw, "transformer-xl": TransformerXL}
LONGEST = 24
"""Sentences of `forests`: beyond the distance that Shaw clips at."""
DIRECTIONS = (True, False, "forward", "backward")


def encoder(name: str, direction: bool | str, *, masks: bool = False) -> MSSAN:
    model = MSSAN(
        dim=DIM,
        hidden=HIDDEN,
        direction=direction,
        word=masks,
        dependency=masks,
        positions=NAMES[name],
        max_tokens=LONGEST,
    )
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
def test_encoder_is_the_references(
    name: str, tree: Ints, direction: bool | str, masks: bool, seed: int, alpha: float
) -> None:
    model = encoder(name, direction, masks=masks)
    x = np.random.default_rng(seed).normal(size=(len(tree), DIM))
    expected = reference.encode(
        x,
        weights(model),
        tree.tolist(),
        6,
        reference.Priors(direction, masks, masks),
        alpha,
        positions(model),
    )
    got = model(one(x), torch.tensor([len(x)]), one(tree), torch.tensor(alpha))
    np.testing.assert_allclose(array(got[0]), expected, atol=1e-5, rtol=0)


def test_parameters() -> None:
    learnt = {
        "shaw": 2 * 6 * 33 * 50,  # a^K and a^V: heads, distances, features of a head
        "transformer-xl": 300 * 300 + 2 * 300,  # W_kR; u and v
    }
    for name, more in learnt.items():
        for registered in (f"ms-san-{name}", f"ms-san-direction-{name}"):
            encoder = build(registered, {})
            assert (encoder.dim, encoder.inputs) == (600, ())
            assert summary(registered).encoder == 1_082_100 + more


def test_an_unknown_direction_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="direction 'sideways': known are true, false, forward"):
        build("ms-san", {"dim": DIM, "direction": "sideways"})

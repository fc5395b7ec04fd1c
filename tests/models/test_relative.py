"""MS-SAN with relative positions against the loop-form references, and its sizes."""

from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.models.ms_san import MSSAN
from heedful.models.registry import build
from heedful.models.relative import Shaw, TransformerXL, by_distance, by_key
from heedful.text.arrays import Ints
from tests.forests import forests
from tests.models.conftest import array
from tests.models.test_ms_san import DIM, HIDDEN, count, one, randomise, weights
from tests.reference import ms_san as reference
from tests.reference import relative

NAMES = ("shaw", "transformer-xl")
LONGEST = 24
"""Sentences of `forests`: beyond the distance that Shaw clips at."""
DIRECTIONS = (True, False, "forward", "backward")


def encoder(name: str | None, direction: bool | str, *, masks: bool = False) -> MSSAN:
    model = MSSAN(
        dim=DIM,
        hidden=HIDDEN,
        direction=direction,
        word=masks,
        dependency=masks,
        relative=name,
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


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("name", NAMES)
def test_each_sentence_of_a_padded_batch_is_the_references(
    name: str, direction: bool | str
) -> None:
    rng = np.random.default_rng(3)
    model = encoder(name, direction)
    lengths = [4, 1, 21, 2]
    x = rng.normal(size=(4, 21, DIM)) * 2  # padding holds noise as well
    got = model(torch.tensor(x), torch.tensor(lengths))
    priors = reference.Priors(direction, word=False, dependency=False)
    for row, length in enumerate(lengths):
        expected = reference.encode(
            x[row, :length], weights(model), range(length), 6, priors, 0, positions(model)
        )
        np.testing.assert_allclose(array(got[row]), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("longest", [1, 2, 3, 7])
def test_rows_shift_to_their_keys_and_back(longest: int) -> None:
    columns = torch.randn(2, longest, 2 * longest - 1)
    pairs = by_key(columns)
    back = by_distance(pairs)
    assert pairs.shape == (2, longest, longest)
    for q, k in product(range(longest), repeat=2):
        assert torch.equal(pairs[:, q, k], columns[:, q, k - q + longest - 1])
        assert torch.equal(back[:, q, k - q + longest - 1], columns[:, q, k - q + longest - 1])
    assert torch.count_nonzero(back) == torch.count_nonzero(pairs)  # zero everywhere else


@pytest.mark.parametrize("name", NAMES)
@torch.no_grad()
def test_only_relative_positions_see_the_order_of_the_words(name: str) -> None:
    """Without a prior a sentence vector is that of its words in any order."""
    x = torch.tensor(np.random.default_rng(1).normal(size=(1, 9, DIM)))
    length = torch.tensor([9])
    plain, placed = encoder(None, direction=False), encoder(name, direction=False)
    torch.testing.assert_close(plain(x.flip(1), length), plain(x, length))
    assert (placed(x.flip(1), length) - placed(x, length)).abs().max() > 1e-2


@torch.no_grad()
def test_shaw_tells_no_distance_beyond_its_clip_from_another() -> None:
    q, k = torch.randn(2, 1, 6, 40, 4).unbind()
    shaw = Shaw((6,), 4)
    added = shaw.scores(q, k) - q @ k.transpose(-1, -2)
    torch.testing.assert_close(added[..., 0, 16:], added[..., 0, 16:17].expand(1, 6, 24))
    assert (added[..., 0, 15] - added[..., 0, 16]).abs().max() > 1e-2


def test_parameters() -> None:
    learnt = {
        "shaw": 2 * 6 * 33 * 50,  # a^K and a^V: heads, distances, features of a head
        "transformer-xl": 300 * 300 + 2 * 300,  # W_kR; u and v
    }
    for name, more in learnt.items():
        for registered in (f"ms-san-{name}", f"ms-san-direction-{name}"):
            encoder = build(registered, {})
            assert (encoder.dim, encoder.inputs) == (600, ())
            assert count(encoder) == 1_082_100 + more


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"direction": "sideways"}, "direction 'sideways': known are true, false, forward"),
        ({"relative": "rope"}, "relative 'rope': known are shaw, transformer-xl"),
    ],
)
def test_an_unknown_choice_is_refused_with_the_known_ones(
    setting: dict[str, str], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        build("ms-san", {"dim": DIM, **setting})

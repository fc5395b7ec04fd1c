"""Masks and distances against loops over pairs of tokens."""

import numpy as np
import torch
from hypothesis import given, settings

from heedful.models.masks import (
    doubling_rounds,
    token_mask,
    tree_distance,
)
from heedful.text.arrays import Ints
from tests.forests import BALLGAME, BALLGAME_HEADS, chain, forests, star
from tests.reference import ms_san as reference

CPU = torch.device("cpu")


def distances(heads: Ints, longest: int | None = None) -> Ints:
    rounds = doubling_rounds(longest or len(heads))
    return tree_distance(torch.tensor(heads)[None], rounds)[0].long().numpy()


def test_token_mask_marks_tokens() -> None:
    expected = [[True, False, False], [True, True, True], [True, True, False]]
    assert token_mask(torch.tensor([1, 3, 2]), 3).tolist() == expected


def test_the_papers_example() -> None:
    from_wash = distances(BALLGAME_HEADS)[BALLGAME.index("wash")]
    expected = {"kids": 1, "hands": 1, "Two": 2, "ballgame": 2, "their": 2, "at": 3, "a": 3}
    assert dict(zip(BALLGAME, from_wash.tolist(), strict=True)) == expected | {"wash": 0}


@settings(max_examples=150)
@given(forests())
def test_tree_distance_is_the_shortest_path(heads: Ints) -> None:
    assert distances(heads).tolist() == reference.dependency_distances(heads.tolist())


def test_deep_and_flat_trees() -> None:
    for length in (1, 2, 3, 4, 5, 8, 9, 16, 17, 31, 32, 33, 64, 65):
        root_last = np.minimum(np.arange(length) + 1, length - 1)
        for heads in (chain(length), root_last, star(length), np.arange(length)):
            expected = reference.dependency_distances(heads.tolist())
            assert distances(heads).tolist() == expected
            assert distances(heads, 256).tolist() == expected  # more rounds change nothing


def test_rounds_reach_the_end_of_the_deepest_chain_and_no_fewer_do() -> None:
    for length in (3, 5, 9, 17, 64, 65, 256):
        rounds = doubling_rounds(length)
        heads = torch.tensor(chain(length))[None]
        assert tree_distance(heads, rounds)[0, 0, -1] == length - 1
        assert tree_distance(heads, rounds - 1)[0, 0, -1] != length - 1

"""Encoders by name: sizes and settings; masks and distances in trees against loops over pairs of tokens."""

import pytest
import torch
from hypothesis import given, settings

from heedful.models.masks import doubling_rounds, tree_distance
from heedful.models.registry import ENCODERS, build, reads_trees, summary
from heedful.text.arrays import Ints
from tests.forests import chain, forests
from tests.reference import ms_san as reference

PAPERS = {
    # docs/models.md prints these in bold, with the NLI head of the paper:
    "ms-san": 1_803_303,
    "ms-san-sep": 3_605_403,
    "disan": 2_344_203,
    "dsa": 2_078_703,
    "dsa-multiple": 7_003_731,
    "cnn-self-attention": 2_439_303,  # Table 1: 2.4m
    # and these next to the papers' roundings:
    "disan-no-direction": 2_344_203,
    "word-additive": 451_803,
    "word-s2t": 541_803,
    "multi-head-s2t": 1_982_403,
    "bi-lstm-s2t": 2_884_803,  # "about 2.885m"
}


@pytest.mark.parametrize("name", PAPERS)
def test_parameters_are_the_papers(name: str) -> None:
    assert summary(name).with_nli_head == PAPERS[name]


def test_trees_are_read_by_those_that_take_heads_and_asking_draws_no_random_number() -> None:
    state = torch.get_rng_state()
    readers = {name for name in ENCODERS if reads_trees(name, {"dim": 300, "max_tokens": 64})}
    assert torch.equal(torch.get_rng_state(), state)
    assert readers == {"ms-san", "ms-san-bert", "ms-san-bert-words", "ms-san-sep", "ms-san-words"}


@pytest.mark.parametrize(
    ("name", "setting", "said"),
    [
        ("disan", {"direction": "no"}, "direction is 'no': give true or false"),
        ("dsa", {"iterations": 0}, "iterations is 0: give a whole number from 1"),
        ("ms-san", {"heads": 6.0}, r"heads is 6\.0: give a whole number from 1"),
        ("ms-san-sep", {"heads": 0}, "0 heads over 300 features"),
        ("ms-san", {"direction": "sideways"}, "'sideways': known are true, false, forward"),
        ("ms-san", {"dim": 12, "heads": 4}, "heads must be a multiple of 6"),
        ("multi-head-s2t", {"dim": 8, "heads": 7}, "7 heads must divide 16"),
        ("transformer", {"size": 12, "heads": 5}, "must be even and divisible"),
    ],
)
def test_a_value_that_a_setting_cannot_have_is_refused(
    name: str, setting: dict[str, object], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        build(name, setting)


@settings(max_examples=150)
@given(forests())
def test_tree_distance_is_the_shortest_path(heads: Ints) -> None:
    found = tree_distance(torch.tensor(heads)[None], doubling_rounds(len(heads)))[0]
    assert found.long().tolist() == reference.dependency_distances(heads.tolist())


def test_rounds_reach_the_end_of_the_deepest_chain_and_no_fewer_do() -> None:
    for length in (3, 5, 9, 17, 64, 65, 256):
        rounds = doubling_rounds(length)
        heads = torch.tensor(chain(length))[None]
        assert tree_distance(heads, rounds)[0, 0, -1] == length - 1
        assert tree_distance(heads, rounds - 1)[0, 0, -1] != length - 1

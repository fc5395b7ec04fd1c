import pytest
import torch

from heedful.models.ms_san import MSSAN
from heedful.models.registry import ENCODERS, build, reads_trees, summary

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


def test_an_unknown_encoder_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"no encoder 'bert': known are .*ms-san"):
        build("bert", {})


def test_max_tokens_reaches_only_an_encoder_that_depends_on_it() -> None:
    reader = build("ms-san", {"dim": 12, "max_tokens": 4})
    assert isinstance(reader, MSSAN)
    assert reader.attention.rounds == 2
    assert build("dsa", {"dim": 12, "max_tokens": 4}).dim == 600


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
    ],
)
def test_a_value_that_a_setting_cannot_have_is_refused(
    name: str, setting: dict[str, object], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        build(name, setting)

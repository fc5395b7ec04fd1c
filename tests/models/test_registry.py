import pytest

from models.ms_san import MSSAN
from models.registry import build


def test_an_unknown_encoder_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"no encoder 'bert': known are .*ms-san"):
        build("bert", {})


def test_settings_reach_the_encoder() -> None:
    assert build("ms-san", {"dim": 12, "heads": 12}).dim == 24


def test_the_longest_sentence_goes_only_to_an_encoder_that_is_built_for_one() -> None:
    assert build("disan", {"dim": 12, "max_tokens": 40}).dim == 24
    assert build("ms-san", {"dim": 12, "max_tokens": 40}).dim == 24


def test_max_tokens_reaches_only_an_encoder_that_depends_on_it() -> None:
    reader = build("ms-san", {"dim": 12, "max_tokens": 4})
    assert isinstance(reader, MSSAN)
    assert reader.attention.rounds == 2
    assert build("dsa", {"dim": 12, "max_tokens": 4}).dim == 600

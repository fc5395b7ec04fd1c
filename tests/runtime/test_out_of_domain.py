"""Texts that the models were not trained to read are counted."""

import numpy as np
import pytest

from heedful.runtime.parsed import is_out_of_domain
from heedful.text.parse import Parse
from tests.asking import embed
from tests.runtime.conftest import Running


def parse(text: str, tokens: int = 4) -> Parse:
    return Parse(text, ("token",) * tokens, np.arange(tokens), (), cut=False)


@pytest.mark.parametrize(
    "text",
    ["Привет мир", "你好世界", "שלום עולם", "مرحبا", "Γειά σου", "こんにちは, dog", "नमस्ते"],
)
def test_other_scripts(text: str) -> None:
    assert is_out_of_domain(parse(text), 0)


@pytest.mark.parametrize(
    "text",
    [
        *("two kids", "¿Qué?", "Łódź, Ångström", "😀 dog", "ﬁne – “x” 3½", "42"),
        *("ｇｏｏｄ ｆｉｌｍ", "𝐠𝐨𝐨𝐝 𝐟𝐢𝐥𝐦", "ⓖⓞⓞⓓ"),
        "жжж " + "the film is good " * 3,
    ],
)
def test_latin_script(text: str) -> None:
    assert not is_out_of_domain(parse(text), 0)


def test_most_words_are_unknown() -> None:
    assert not is_out_of_domain(parse("a b c d"), 2)
    assert is_out_of_domain(parse("a b c", 3), 2)


def test_they_are_counted_by_input(running: Running) -> None:
    texts = ["two kids", "zebra giraffe dog", "Привет " * 40, "dog " * 40]
    for more in ({"truncate": True}, {"mean": True}):
        result = running.ask(embed(running.service, texts, model="tiny-flat", **more))
        assert (result.out_of_domain, result.inputs) == (2, 4)

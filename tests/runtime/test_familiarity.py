"""Texts that the models were not trained to read are counted."""

import pytest

from heedful.runtime.familiarity import unfamiliar
from tests.asking import embed
from tests.runtime.conftest import Running


@pytest.mark.parametrize(
    "text",
    ["Привет мир", "你好世界", "שלום עולם", "مرحبا", "Γειά σου", "こんにちは, dog", "नमस्ते"],
)
def test_other_scripts(text: str) -> None:
    assert unfamiliar(text, 4, 0)


@pytest.mark.parametrize(
    "text",
    [
        *("two kids", "¿Qué?", "Łódź, Ångström", "😀 dog", "ﬁne – “x” 3½", "42"),
        *("ｇｏｏｄ ｆｉｌｍ", "𝐠𝐨𝐨𝐝 𝐟𝐢𝐥𝐦", "ⓖⓞⓞⓓ"),
        "жжж " + "the film is good " * 3,
    ],
)
def test_latin_script(text: str) -> None:
    assert not unfamiliar(text, 4, 0)


def test_most_words_are_unknown() -> None:
    assert not unfamiliar("a b c d", 4, 2)
    assert unfamiliar("a b c", 3, 2)


def test_they_are_counted_by_input(running: Running) -> None:
    texts = ["two kids", "zebra giraffe dog", "Привет " * 40, "dog " * 40]
    for more in ({"truncate": True}, {"mean": True}):
        result = running.ask(embed(running.service, texts, model="tiny-flat", **more))
        assert (result.unfamiliar, result.inputs) == (2, 4)

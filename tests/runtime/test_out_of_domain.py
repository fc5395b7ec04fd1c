"""Texts that the models were not trained to read are counted."""

import importlib

import numpy as np
import pytest
import spacy
import spacy.lang.en.examples

from heedful.runtime.parsed import is_out_of_domain
from heedful.text.parse import Parse
from tests.asking import embed
from tests.runtime.conftest import Running

ENGLISH = spacy.blank("en")


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


def tokens_of(text: str) -> Parse:
    tokens = tuple(token.text for token in ENGLISH(text))
    return Parse(text, tokens, np.arange(len(tokens)), (), cut=False)


@pytest.mark.parametrize("language", ["de", "es", "nl", "ro", "id"])
def test_most_of_spacys_example_sentences_of_other_languages(language: str) -> None:
    """All of their words are listed, so that function words alone tell; headlines have few of them."""
    sentences = importlib.import_module(f"spacy.lang.{language}.examples").sentences
    foreign = [is_out_of_domain(tokens_of(sentence), 0) for sentence in sentences]
    assert sum(foreign) >= len(foreign) / 2


@pytest.mark.parametrize(
    "text",
    [
        "Das Essen war kalt, und niemand hat sich entschuldigt.",
        "Où est mon colis ? Je ne le trouve pas.",
        "¿Dónde está mi paquete? No lo encuentro.",
        "Bitte rufen Sie mich zurück!",
        "IL CIBO ERA FREDDO E NON CI HANNO CHIESTO SCUSA.",
    ],
)
def test_other_languages(text: str) -> None:
    assert is_out_of_domain(tokens_of(text), 0)


@pytest.mark.parametrize(
    ("text", "unlisted"),
    [
        *((sentence, 0) for sentence in spacy.lang.en.examples.sentences),
        ("I watched La vie en rose in Paris.", 0),
        ("La La Land won six Oscars.", 0),
        ("Dr. Müller from Düsseldorf visits us.", 2),
        ("def f(x): return x ** 2", 4),
        ("docker run --rm -p 8000:8000 heedful", 5),
        ("ls -la /var/log/nginx", 5),
        ("Tiramisu with mascarpone", 2),
    ],
)
def test_english_and_code(text: str, unlisted: int) -> None:
    assert not is_out_of_domain(tokens_of(text), unlisted)


def test_they_are_counted_by_input(running: Running) -> None:
    texts = ["two kids", "zebra giraffe dog", "Привет " * 40, "dog " * 40]
    for more in ({"truncate": True}, {"mean": True}):
        result = running.ask(embed(running.service, texts, model="tiny-flat", **more))
        assert (result.out_of_domain, result.inputs) == (2, 4)

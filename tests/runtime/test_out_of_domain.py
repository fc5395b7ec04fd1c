"""Texts that the models were not trained to read are counted."""

import importlib

import pytest
import spacy
import spacy.lang.en.examples

from heedful.text.language import is_out_of_domain
from tests.asking import embed
from tests.runtime.conftest import Running

ENGLISH = spacy.blank("en")
OTHER_SCRIPTS = (
    *("Привет мир", "你好世界", "שלום עולם", "مرحبا", "Γειά σου", "こんにちは, dog", "नमस्ते"),
)
OTHER_LANGUAGES = (
    "Das Essen war kalt, und niemand hat sich entschuldigt.",
    "Où est mon colis ? Je ne le trouve pas.",
    "¿Dónde está mi paquete? No lo encuentro.",
    "Bitte rufen Sie mich zurück!",
    "IL CIBO ERA FREDDO E NON CI HANNO CHIESTO SCUSA.",
)
LATIN_SCRIPT = (
    *("two kids", "¿Qué?", "Łódź, Ångström", "😀 dog", "ﬁne – “x” 3½", "42"),
    *("ｇｏｏｄ ｆｉｌｍ", "𝐠𝐨𝐨𝐝 𝐟𝐢𝐥𝐦", "ⓖⓞⓞⓓ"),
    "жжж " + "the film is good " * 3,
)


def out_of_domain(text: str, unlisted: int = 0) -> bool:
    return is_out_of_domain(text, [token.text for token in ENGLISH(text)], unlisted)


def test_other_languages() -> None:
    for text in (*OTHER_SCRIPTS, *OTHER_LANGUAGES):
        assert out_of_domain(text), text
    assert not out_of_domain("zebra giraffe dog kids", 2)
    assert out_of_domain("zebra giraffe dog", 2)  # most words are unknown


@pytest.mark.parametrize("language", ["de", "es", "nl", "ro", "id"])
def test_most_of_spacys_example_sentences_of_other_languages(language: str) -> None:
    """All of their words are listed, so that function words alone tell; headlines have few of them."""
    sentences = importlib.import_module(f"spacy.lang.{language}.examples").sentences
    assert sum(map(out_of_domain, sentences)) >= len(sentences) / 2


UNLISTED = {
    "Dr. Müller from Düsseldorf visits us.": 2,
    "def f(x): return x ** 2": 4,
    "docker run --rm -p 8000:8000 heedful": 5,
    "ls -la /var/log/nginx": 5,
    "Tiramisu with mascarpone": 2,
}


def test_english_and_code() -> None:
    foreign = ("I watched La vie en rose in Paris.", "La La Land won six Oscars.")
    listed = dict.fromkeys((*LATIN_SCRIPT, *spacy.lang.en.examples.sentences, *foreign), 0)
    for text, unlisted in {**listed, **UNLISTED}.items():
        assert not out_of_domain(text, unlisted), text


def test_they_are_counted_by_input(running: Running) -> None:
    texts = ["two kids", "zebra giraffe dog", "Привет " * 40, "dog " * 40]
    for more in ({"truncate": True}, {"mean": True}):
        result = running.ask(embed(running.service, texts, model="tiny-flat", **more))
        assert (result.out_of_domain, result.inputs) == (2, 4)

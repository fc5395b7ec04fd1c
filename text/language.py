"""Whether a text is English, by its function words and its letters."""

import re
import runpy
import unicodedata
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import distribution

from heedful.text.invisible import without_invisible
from heedful.text.plain import LETTER

OTHERS = (
    *("ca", "cs", "da", "de", "es", "fi", "fr", "hr", "hu"),
    *("id", "it", "nb", "nl", "pl", "pt", "ro", "sv", "tr"),
)
LEAST = 2
"""Different function words of another language that a text must have."""
LEAST_SHARE = 0.2
"""And the share of its different words that these are at least."""
ENGLISH_COUNTS = 2
"""Times that an English function word counts: titles and names of other languages stand in English texts."""
ENGLISH_SHARE = 0.25
"""The share of a text's words that are English function words, from which on it is English."""
_CODE = re.compile(r"[_/\\={}<>|@#$&*+~^`]|\s-")
"""Signs of commands and code, which are no language: a path, an assignment, an option."""
MAX_CHARACTERS = 1000
"""How much of a text is looked at for its script."""
_LETTER = re.compile(LETTER)
_LATIN = re.compile(r"[A-Za-z\u00AA-\u024F\u1E00-\u1EFF]")


def has_other_script(text: str) -> bool:
    """Whether most letters are not Latin."""
    if text.isascii():
        return False
    seen = without_invisible(text[:MAX_CHARACTERS])
    compatible = unicodedata.normalize("NFKC", seen)  # as words are read
    letters = "".join(_LETTER.findall(compatible))
    return 2 * len(_LATIN.findall(letters)) < len(letters)


def is_english_or_code(text: str, tokens: Sequence[str]) -> bool:
    """Whether many tokens are English function words, or the text has signs of code."""
    share = sum(token.casefold() in _ENGLISH for token in tokens) / max(1, len(tokens))
    return share >= ENGLISH_SHARE or bool(_CODE.search(text))


def is_foreign(tokens: Sequence[str]) -> bool:
    """Whether the tokens are of a language of OTHERS, which are those of Latin letters.

    A text of few words may have no function word, and is then taken for English.
    """
    words = {token.casefold() for token in tokens}
    if _LANGUAGES.keys().isdisjoint(words):
        return False
    found = Counter(language for word in words for language in _LANGUAGES.get(word, ()))
    most = max(found.values())
    english = ENGLISH_COUNTS * len(words & _ENGLISH)
    return most >= max(LEAST, LEAST_SHARE * len(words)) and most > english


def _function_words(language: str) -> frozenset[str]:
    """spaCy's stop words, read from their file: to import its package of French takes two seconds."""
    file = distribution("spacy").locate_file(f"spacy/lang/{language}/stop_words.py")
    words = runpy.run_path(str(file))["STOP_WORDS"]
    return frozenset(word.casefold() for word in words)


def _languages(english: frozenset[str]) -> dict[str, tuple[str, ...]]:
    """The languages of each function word that is not an English one too, nor a single letter."""
    languages: dict[str, tuple[str, ...]] = {}
    for language in OTHERS:
        for word in _function_words(language) - english:
            if len(word) > 1:
                languages[word] = (*languages.get(word, ()), language)
    return languages


# On import, before the serving processes are forked, which then share them.
_ENGLISH = _function_words("en")
_LANGUAGES = _languages(_ENGLISH)

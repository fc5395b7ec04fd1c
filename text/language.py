"""Whether a text is English, by its function words and its letters."""

import re
import runpy
import unicodedata
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import distribution

from heedful.text.invisible import without_invisible
from heedful.text.plain import LETTER

LANGUAGES = (
    *("ca", "cs", "da", "de", "es", "fi", "fr", "hr", "hu"),
    *("id", "it", "nb", "nl", "pl", "pt", "ro", "sv", "tr"),
)
MIN_WORDS = 2
"""A foreign text has at least this many different function words of its language."""
MIN_SHARE = 0.2
"""They are at least this share of its different words."""
ENGLISH_WEIGHT = 2
"""Weight of an English function word against a foreign one: English texts contain foreign titles and names."""
ENGLISH_SHARE = 0.25
"""A text is English if at least this share of its words are English function words."""
_CODE = re.compile(r"[_/\\={}<>|@#$&*+~^`]|\s-")
"""Signs of commands and code, which are no language: a path, an assignment, an option."""
MAX_CHARACTERS = 1000
"""Characters of a text that decide on its script."""
_LETTER = re.compile(LETTER)
_LATIN = re.compile(r"[A-Za-z\u00AA-\u024F\u1E00-\u1EFF]")


def is_out_of_domain(text: str, tokens: Sequence[str], unlisted: int) -> bool:
    """Whether the text is not English, as far as its letters, function words and `unlisted` tokens tell."""
    if has_other_script(text) or is_foreign(tokens):
        return True
    return 2 * unlisted > len(tokens) and not is_english_or_code(text, tokens)


def has_other_script(text: str) -> bool:
    """Whether most letters are not Latin."""
    if text.isascii():
        return False
    visible = without_invisible(text[:MAX_CHARACTERS])
    compatible = unicodedata.normalize("NFKC", visible)  # as words are read
    letters = "".join(_LETTER.findall(compatible))
    return 2 * len(_LATIN.findall(letters)) < len(letters)


def is_english_or_code(text: str, tokens: Sequence[str]) -> bool:
    """Whether many tokens are English function words, or the text has signs of code."""
    share = sum(token.casefold() in FUNCTION_WORDS for token in tokens) / max(1, len(tokens))
    return share >= ENGLISH_SHARE or bool(_CODE.search(text))


def is_foreign(tokens: Sequence[str]) -> bool:
    """Whether the tokens are of one of LANGUAGES, which have Latin letters.

    A text of few words may have no function word, and then counts as English.
    """
    words = {token.casefold() for token in tokens}
    if _LANGUAGES_BY_WORD.keys().isdisjoint(words):
        return False
    counts = Counter(language for word in words for language in _LANGUAGES_BY_WORD.get(word, ()))
    most = max(counts.values())
    english = ENGLISH_WEIGHT * len(words & FUNCTION_WORDS)
    return most >= max(MIN_WORDS, MIN_SHARE * len(words)) and most > english


def _function_words(language: str) -> frozenset[str]:
    """spaCy's stop words, read from their file: the import of spaCy's package for French takes two seconds."""
    file = distribution("spacy").locate_file(f"spacy/lang/{language}/stop_words.py")
    words = runpy.run_path(str(file))["STOP_WORDS"]
    return frozenset(word.casefold() for word in words)


def _languages_by_word(english: frozenset[str]) -> dict[str, tuple[str, ...]]:
    """The languages of each function word, but for English function words and single letters."""
    languages: dict[str, tuple[str, ...]] = {}
    for language in LANGUAGES:
        for word in _function_words(language) - english:
            if len(word) > 1:
                languages[word] = (*languages.get(word, ()), language)
    return languages


# On import: serving processes, which are forked later, share them.
FUNCTION_WORDS = _function_words("en")
"""Of English."""
_LANGUAGES_BY_WORD = _languages_by_word(FUNCTION_WORDS)

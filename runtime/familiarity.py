"""Texts that no model here was trained to read: their answers mean little."""

import re
import unicodedata

from heedful.text.plain import LETTER

_LETTER = re.compile(LETTER)
_LATIN = re.compile(r"[A-Za-z\u00AA-\u024F\u1E00-\u1EFF]")
MAX_CHARACTERS = 1000
"""How much of a text is looked at."""


def unfamiliar(text: str, tokens: int, unlisted: int) -> bool:
    """Whether most of the tokens are `unlisted`, or most of the letters not Latin: the models read English."""
    return 2 * unlisted > tokens or not _latin(text)


def _latin(text: str) -> bool:
    if text.isascii():
        return True
    compatible = unicodedata.normalize("NFKC", text[:MAX_CHARACTERS])  # as words are looked up
    letters = "".join(_LETTER.findall(compatible))
    return 2 * len(_LATIN.findall(letters)) >= len(letters)

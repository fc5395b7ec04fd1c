"""Other spellings of a text, which mean the same: without its stop, in lower case, contracted, typographic."""

import re
from collections.abc import Callable, Iterable, Mapping

CONTRACTIONS = (
    ("is not", "isn't"),
    ("are not", "aren't"),
    ("was not", "wasn't"),
    ("were not", "weren't"),
    ("do not", "don't"),
    ("does not", "doesn't"),
    ("did not", "didn't"),
    ("has not", "hasn't"),
    ("have not", "haven't"),
    ("will not", "won't"),
    ("cannot", "can't"),
    ("could not", "couldn't"),
    ("would not", "wouldn't"),
    ("should not", "shouldn't"),
    ("it is", "it's"),
    ("there is", "there's"),
    ("that is", "that's"),
    ("he is", "he's"),
    ("she is", "she's"),
    ("they are", "they're"),
    ("we are", "we're"),
    ("you are", "you're"),
    ("I am", "I'm"),
    ("I have", "I've"),
    ("they will", "they'll"),
    ("I will", "I'll"),
)
_QUOTED = re.compile(r'"([^"]*)"')


def stop_changed(text: str) -> str:
    """Without its final stop, or with one where it ends in a letter or a digit."""
    if text.endswith("."):
        return text[:-1]
    return f"{text}." if text[-1:].isalnum() else text


def lower(text: str) -> str:
    """In lower case."""
    return text.lower()


def contracted(text: str) -> str:
    """ "is not" as "isn't", and so on; a text without any has its contractions written out."""
    short = _replaced(text, CONTRACTIONS)
    return short if short != text else _replaced(text, [(b, a) for a, b in CONTRACTIONS])


def typographic(text: str) -> str:
    """Curved quotation marks and apostrophes, and a dash in place of two hyphens."""
    return _QUOTED.sub("“\\1”", text).replace("'", "’").replace(" -- ", " – ").replace("--", "—")


def _replaced(text: str, pairs: Iterable[tuple[str, str]]) -> str:
    for old, new in pairs:
        for first, second in ((old, new), (old[0].upper() + old[1:], new[0].upper() + new[1:])):
            text = re.sub(rf"\b{re.escape(first)}\b", second, text)
    return text


SPELLINGS: Mapping[str, Callable[[str], str]] = {
    "stop": stop_changed,
    "lower case": lower,
    "contracted": contracted,
    "typographic": typographic,
}

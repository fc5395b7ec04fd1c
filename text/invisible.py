"""Invisible characters of a text, and emoji that contain them.

IGNORABLE is Unicode's property Default_Ignorable_Code_Point (DerivedCoreProperties.txt). Its blocks are the same in
later versions: they include code points that are not assigned yet. ANNOTATION marks and control characters have no
glyph either. Unicode's White_Space is not invisible; U+001C to U+001F, which only `str.isspace` counts as white space,
are.
"""

import re
import unicodedata

IGNORABLE = (
    r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    r"\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
ANNOTATION = r"\ufff9-\ufffb"
CONTROLS = "".join(
    rf"\x{code:02x}"
    for code in range(0xA0)
    if unicodedata.category(chr(code)) == "Cc"
    and code not in (9, 10, 11, 12, 13, 0x85)  # white space
    # Escapes; quotation marks (text.plain.MARKS).
    and code not in (0x1B, 0x91, 0x92, 0x93, 0x94, 0x9B)
)
_ESCAPES = (
    r"\x1b\[\?1[hl]\x1b[=>]"  # the keypad
    r"|\x1b\[[0-?]*[ -/]*(?:[@-~]|\Z)"  # a terminal's colours and cursor, at the end of a text cut short too
    r"|\x9b(?:[0-9:;]+m|m(?!\w)|\?[0-9;]*[hl]|[0-3][JK])"  # the commonest of them, begun with one byte
    r"|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"  # titles, links
    r"|[\x90\x9d][^\x07\x1b\x90\x9d]*(?:\x07|\x1b\\)"
    r"|\x1b[()*+./#%-][0-9A-Z@]"  # character sets
    r"|\x1b(?:[78]|[cDEHMNOZ](?![a-z]))"  # saved and restored, reset
)
"""ECMA-48's control sequences. A character of C1 may be one of Windows-1252 read as Latin-1 ("\x9bmore" is "›more"),
and an escape may precede a word without a sequence: characters that could be text are read."""
_INVISIBLE_CHARACTERS = f"{IGNORABLE}{ANNOTATION}{CONTROLS}"
INVISIBLE = re.compile(rf"(?:{_ESCAPES}|[\x1b\x9b]|[{_INVISIBLE_CHARACTERS}]+)+")
_PICTURES = r"\u203c\u2049\u2122\u2139\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001f1e5\U0001f200-\U0001faff"
"""The blocks of Unicode's Extended_Pictographic."""
_PICTURE = f"[{_PICTURES}]"
EMOJI = (
    rf"{_PICTURE}(?:[\U0001f3fb-\U0001f3ff\ufe00-\ufe0f\U000e0020-\U000e007f]|\u200d{_PICTURE})+"
    r"|[\U0001f1e6-\U0001f1ff]{2}"
)
"""In a regular expression, an emoji of several characters (UTS 51, 1.4.9): joined, with a colour of skin, a flag."""
BEGINNINGS = rf"\x1b\x9b{_INVISIBLE_CHARACTERS}{_PICTURES}\U0001f1e6-\U0001f1ff"
"""First characters of INVISIBLE or EMOJI, in a set of a regular expression."""


def without_invisible(text: str) -> str:
    """The visible text."""
    return text if text.isascii() and text.isprintable() else INVISIBLE.sub("", text)


def is_blank(text: str) -> bool:
    """Whether the text has no visible character."""
    return not text or text.isspace() or not without_invisible(text).strip()

"""Normalised text, spelled like the training data: isn’t, isn`t and isnt become isn't, ﬁne fine, sooo so.

Phones and word processors write characters that the datasets hardly contain. A model that has never seen "n’t" misses
the negation.
"""

import html
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from heedful.text.composition import is_link
from heedful.text.invisible import BEGINNINGS, EMOJI, INVISIBLE, without_invisible

LETTER = r"[^\W\d_]"
"""A letter of any script, in a regular expression."""
MARKS = str.maketrans(
    dict.fromkeys("‘’‛ʹʼ′＇\x91\x92", "'")
    | dict.fromkeys("“”„‟″＂\x93\x94", '"')
    | dict.fromkeys("‐‑", "-")
    | {chr(code + 0xFEE0): chr(code) for code in range(ord("!"), ord("~") + 1)}
    | dict(zip("、。\u2800", ",. ", strict=True))
)
"""\x91 to \x94 are quotation marks of Windows-1252 that were read as Latin-1. Full-width characters are those of East
Asian keyboards; of Braille, one character is blank."""
DASHES = str.maketrans({"–": "-", "‒": "-", "−": "-", "—": "--", "―": "--"})
APOSTROPHE = re.compile(
    rf"(?<={LETTER})[`´](?={LETTER})|\A[`´](?=(?:[smd]|ll|re|ve)\Z)", re.IGNORECASE
)
"""An apostrophe in a word, or before a token that the tokenizer has split off: "it´s" is "it" and "´s"."""
STRETCHED = re.compile(rf"({LETTER})\1\1+")
_NAMES = (
    "a abbr acronym address applet area article aside audio b base basefont bdi bdo bgsound big blink blockquote body "
    "br button canvas caption center cite code col colgroup data datalist dd del details dfn dialog dir div dl dt em "
    "embed fieldset figcaption figure font footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html i "
    "iframe image img input ins kbd keygen label legend li link listing main map mark marquee menu menuitem meta meter "
    "nav nobr noembed noframes noscript object ol optgroup option output p param picture plaintext pre progress q rb "
    "rp rt rtc ruby s samp script search section select slot small source spacer span strike strong style sub summary "
    "sup table tbody td template textarea tfoot th thead time title tr track tt u ul var video wbr xmp"
)
ELEMENTS = frozenset(_NAMES.split())
"""HTML's elements, including obsolete ones: other names between angle brackets are words of the text."""
_SPACE = r"[^\S\x1c-\x1f]"
"""White space but U+001C to U+001F (text.invisible)."""
TAG = re.compile(
    r"<!--(?:[^<-]|<(?!!--)|-(?!->))*+-->"  # up to the next "<!--", so that the time is linear
    r"|</?([a-z][a-z0-9]*)"
    rf"(?:{_SPACE}++(?:async|autoplay|checked|compact|controls|data-[\w-]+|default|defer|disabled|download|hidden|inert|ismap"
    r"|itemscope|loop|multiple|muted|noshade|nowrap|open|readonly|required|reversed|selected)(?=[\s/>]))*"
    rf"(?:{_SPACE}++[a-z][\w:.-]*{_SPACE}*=[^<>]{{0,300}})?{_SPACE}*/?>",
    re.IGNORECASE,
)
"""A comment, or a possible tag with its name. Only HTML's attributes may have no value: "a <b and c> d" has no tag."""
EMPHASIS = re.compile(
    r"(?<![\w*`])([*_]{1,3}|`{1,3})(?=[\"'(\[]?[^\W_])([^\n]{1,100}?)(?<=\S)\1(?![\w*`])"
)
"""Markdown's "*very*", "**very**", "_very_" and "`very`"."""
HASHES = re.compile(r"(?<!\S)#+(?=[^\W\d_])|^#{1,6}(?= )", re.MULTILINE)
"""Those of hashtags and of Markdown's headings."""
WORD = re.compile(r"\S+")
JOINT = re.compile(r"(?<=[^\W_]{2})_+(?=[^\W_])|(?<=[^\W_])_+(?=[^\W_]{2})")
"""The mark between the words of a name such as "user_id"; not that of "o_O"."""
_NEGATED = "AI|ARE|CA|COULD|DID|DOES|DO|HAD|HAS|HAVE|IS|MIGHT|MUST|NEED|SHOULD|WAS|WERE|WO|WOULD"
SHOUTED = re.compile(rf"\b(?:{_NEGATED})NT\b")
"""spaCy's tokenizer splits "Dont" and "dont", but not "DONT"."""
MISPLACED = re.compile(rf"\b({_NEGATED})'(n)(?=t\b)", re.IGNORECASE)
"""The apostrophe of "did'nt"."""
_ENTITY = r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]{2,8});"
ENTITY = re.compile(_ENTITY)
CONDENSED = re.compile(f"(?P<entity>{_ENTITY})|(?P<emoji>{EMOJI})|{INVISIBLE.pattern}")
"""Strings that become one character, or none."""
_FIRST_OF_CONDENSED = re.compile(f"[&{BEGINNINGS}]")
"""The first characters of CONDENSED: most texts have none, and this search takes a tenth of the time."""
MAX_PLAIN = 32_768
"""Visible characters of a text that are normalised. The rest is not read, unless the text is mostly blanks."""
CACHED_WORDS = 16_384
"""Words whose plain spelling is cached, in about 200 bytes each; they have 500 characters at most."""
MAX_CACHED_LENGTH = 24
"""Length of the longest token, or run between white space, that is cached."""


@dataclass(frozen=True, slots=True)
class Shifts:
    """The offsets of a normalised text in the original, which has characters that it lacks."""

    at: Sequence[int] = ()
    """Ascending: 2 i + 1 where character i replaces several, 2 i where characters before it are left out."""
    missing: Sequence[int] = (0,)
    """Characters that are missing before `at[0]`, before `at[1]`, .., and in all."""

    def original(
        self, starts: Iterable[int], stops: Iterable[int]
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The spans of tokens in the original. Characters that are left out after a token are no part of it."""
        return (
            tuple([start + self.missing[bisect_right(self.at, 2 * start)] for start in starts]),
            tuple([stop + self.missing[bisect_left(self.at, 2 * stop)] for stop in stops]),
        )


def plain(text: str) -> tuple[str, Shifts]:
    """The normalised text, which the tokenizer splits, and its shifts.

    It has plain quotation marks, apostrophes and hyphens, blanks for HTML's tags and comments, Markdown's marks and the
    "_" of "user_id", "Dont" for "DONT" and "didn't" for "did'nt", each at the same offset. An HTML entity and an emoji
    are one character, and invisible characters are left out.
    """
    if len(text) > MAX_PLAIN and (end := _end_of(text)) < len(text):
        beginning, shifts = plain(text[:end])
        return beginning + text[end:], shifts
    shifts = Shifts()
    ascii = text.isascii()
    if not ascii or "<" in text or "`" in text:
        text = _without_tags(_plain_marks(text))
    if ("&" in text or not (ascii and text.isprintable())) and _FIRST_OF_CONDENSED.search(text):
        condensed, shifts = _condense(text)
        if shifts.at:  # "&lt;b&gt;" is a tag
            text = _without_tags(_plain_marks(condensed))
    if "*" in text or "_" in text or "`" in text or "#" in text:
        text = _without_markup(text)
    if "'n" in text or "'N" in text:
        text = MISPLACED.sub(r"\1\2'", text)
    if "NT" in text:
        text = SHOUTED.sub(lambda word: word[0].capitalize(), text)
    return text, shifts


@lru_cache(maxsize=CACHED_WORDS)
def plain_word(token: str) -> str:
    """A token as vocabularies list it: in plain marks, compatible characters (NFKC) and no invisible ones.

    The tokenizer splits "isnt" into "is" and "nt", which is "n't", and "is'nt" into "is" and "'nt".
    """
    word = ENTITY.sub(_character, token) if "&" in token else token
    if not (word.isascii() and word.isprintable()):
        word = without_invisible(word) or word
    if "`" in word or not word.isascii():
        word = _plain_marks(word)
    if not word.isascii():
        compatible = unicodedata.normalize("NFKC", word).translate(DASHES)
        word = compatible if compatible.split() == [compatible] else word
    return f"{word[-2]}'{word[-1]}" if word.lower() in ("nt", "'nt") else word


def _end_of(text: str) -> int:
    """The end of the first MAX_PLAIN visible characters."""
    end = MAX_PLAIN
    for match in INVISIBLE.finditer(text):
        if match.start() >= end:
            break
        end += match.end() - match.start()
    return end


def _condense(text: str) -> tuple[str, Shifts]:
    """The text with a character for each HTML entity and each emoji, and without invisible characters."""
    parts, at, missing = [], [], [0]
    begin = length = 0
    for match in CONDENSED.finditer(text):
        start, stop = match.span()
        character = ""
        if match["entity"]:
            character = without_invisible(_character(match))
            if len(character) > 1:
                continue
        elif match["emoji"]:
            character = text[start]
        parts += [text[begin:start], character]
        length += start - begin
        at.append(2 * length + len(character))
        missing.append(missing[-1] + stop - start - len(character))
        begin, length = stop, length + len(character)
    return "".join([*parts, text[begin:]]), Shifts(at, missing)


def _without_markup(text: str) -> str:
    """The text with blanks for Markdown's marks, and for the "_" of names that are no links."""
    text = EMPHASIS.sub(lambda match: match[2].center(len(match[0])), text)
    text = HASHES.sub(_blanks, text)
    if "_" not in text:
        return text
    return WORD.sub(lambda word: word[0] if is_link(word[0]) else JOINT.sub(_blanks, word[0]), text)


def _blanks(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _without_tags(text: str) -> str:
    """The text with blanks for HTML's tags and comments."""
    return TAG.sub(_without_tag, text) if "<" in text else text


def _without_tag(match: re.Match[str]) -> str:
    """Blanks for a comment or a tag of HTML, else the match."""
    return _blanks(match) if match[1] is None or match[1].lower() in ELEMENTS else match[0]


def _character(entity: re.Match[str]) -> str:
    """The entity's character in plain marks; an entity that HTML does not define is unchanged."""
    return _plain_marks(html.unescape(entity[0]))


def _plain_marks(text: str) -> str:
    """The text with plain marks, of the same length."""
    if not text.isascii():
        text = text.translate(MARKS)
    return APOSTROPHE.sub("'", text) if "`" in text or "´" in text else text

"""Text as the training data spells it: isn’t, isn`t and isnt are read as isn't, ﬁne as fine, sooo as so.

Phones and word processors write characters that the datasets hardly contain. A model that has never seen "n’t"
misses the negation.
"""

import html
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

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
"""In a word, or before a token that the tokenizer has parted from one: "it´s" is "it" and "´s"."""
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
"""HTML's, those that are obsolete included: other names between angle brackets are the text's own words."""
_SPACE = r"[^\S\x1c-\x1f]"
"""White space but U+001C to U+001F (text.invisible)."""
TAG = re.compile(
    r"<!--(?:[^<-]|<(?!!--)|-(?!->))*+-->"  # up to another beginning: the time stays linear
    r"|</?([a-z][a-z0-9]*)"
    rf"(?:{_SPACE}++(?:async|autoplay|checked|compact|controls|data-[\w-]+|default|defer|disabled|download|hidden|inert|ismap"
    r"|itemscope|loop|multiple|muted|noshade|nowrap|open|readonly|required|reversed|selected)(?=[\s/>]))*"
    rf"(?:{_SPACE}++[a-z][\w:.-]*{_SPACE}*=[^<>]{{0,300}})?{_SPACE}*/?>",
    re.IGNORECASE,
)
"""A comment, or what may be a tag, with its name. Of attributes without a value only HTML's count: "a <b and c> d"."""
_NEGATED = "AI|ARE|CA|COULD|DID|DOES|DO|HAD|HAS|HAVE|IS|MIGHT|MUST|NEED|SHOULD|WAS|WERE|WO|WOULD"
SHOUTED = re.compile(rf"\b(?:{_NEGATED})NT\b")
"""spaCy's tokenizer splits "Dont" and "dont", but not "DONT"."""
MISPLACED = re.compile(rf"\b({_NEGATED})'(n)(?=t\b)", re.IGNORECASE)
"""The apostrophe of "did'nt"."""
_ENTITY = r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]{2,8});"
ENTITY = re.compile(_ENTITY)
CONDENSED = re.compile(f"(?P<entity>{_ENTITY})|(?P<emoji>{EMOJI})|{INVISIBLE.pattern}")
"""What is read as one character, or not at all."""
_CONDENSES = re.compile(f"[&{BEGINNINGS}]")
"""What CONDENSED begins with: most texts hold none, and this takes a tenth of the time."""
READ = 32_768
"""Visible characters of a text that are made plain: of a longer one no more is read, unless it is mostly blanks."""
REMEMBERED_WORDS = 16_384
"""Words whose plain spelling is kept, in about 200 bytes each."""
LONGEST_KEPT = 24
"""Characters of a token, or of a run between white space, of which more is kept."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where a text that is read lacks characters of the text as it was typed."""

    at: Sequence[int] = ()
    """Ascending: 2 i + 1 where more characters stand for character i, 2 i where some before it are not read."""
    longer: Sequence[int] = (0,)
    """Characters that are lacking before `at[0]`, before `at[1]`, .., and in all."""

    def starts(self, offsets: Iterable[int]) -> tuple[int, ...]:
        """Of tokens in the text as it was typed, from their offsets in what is read."""
        return tuple(
            [offset + self.longer[bisect_right(self.at, 2 * offset)] for offset in offsets]
        )

    def stops(self, offsets: Iterable[int]) -> tuple[int, ...]:
        """As `starts`: what is not read behind a token is no part of it."""
        return tuple([offset + self.longer[bisect_left(self.at, 2 * offset)] for offset in offsets])


def plain(text: str) -> tuple[str, Places]:
    """The text as the tokenizer takes it, and what it lacks.

    It has plain quotation marks, apostrophes and hyphens, blanks for HTML's tags and comments, "Dont" for "DONT" and
    "didn't" for "did'nt", each in the places of what was typed; an HTML entity and an emoji are one character, and
    what is invisible is not there.
    """
    if len(text) > READ and (end := _end_of(text)) < len(text):
        read, places = plain(text[:end])
        return read + text[end:], places
    places = Places()
    ascii = text.isascii()
    if not ascii or "<" in text or "`" in text:
        text = _blanked(_plain_marks(text))
    if ("&" in text or not (ascii and text.isprintable())) and _CONDENSES.search(text):
        condensed, places = _condensed(text)
        if places.at:  # "&lt;b&gt;" is a tag
            text = _blanked(_plain_marks(condensed))
    if "'n" in text or "'N" in text:
        text = MISPLACED.sub(r"\1\2'", text)
    if "NT" in text:
        text = SHOUTED.sub(lambda word: word[0].capitalize(), text)
    return text, places


@lru_cache(maxsize=REMEMBERED_WORDS)
def plain_word(token: str) -> str:
    """A token as vocabularies list it: in plain marks, compatible characters (NFKC) and no invisible ones.

    The tokenizer splits "isnt" into "is" and "nt", which stands for "n't", and "is'nt" into "is" and "'nt".
    """
    typed = ENTITY.sub(_character, token) if "&" in token else token
    word = _plain_marks(without_invisible(typed) or typed)
    if not word.isascii():
        compatible = unicodedata.normalize("NFKC", word).translate(DASHES)
        word = compatible if compatible.split() == [compatible] else word
    return f"{word[-2]}'{word[-1]}" if word.lower() in ("nt", "'nt") else word


def shortened(word: str) -> tuple[str, ...]:
    """Other spellings of a stretched word ("gooood"): each run of three or more letters as two, then as one.

    Empty for other words.
    """
    if not STRETCHED.search(word):
        return ()
    return STRETCHED.sub(r"\1\1", word), STRETCHED.sub(r"\1", word)


def _end_of(text: str) -> int:
    """Where READ visible characters of the text end."""
    end, gone = READ, 0
    for match in INVISIBLE.finditer(text):
        if match.start() >= READ + gone:
            break
        gone += match.end() - match.start()
    return end + gone


def _condensed(text: str) -> tuple[str, Places]:
    """With one character for each HTML entity and each emoji, and none for what is invisible."""
    parts, at, longer = [], [], [0]
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
        longer.append(longer[-1] + stop - start - len(character))
        begin, length = stop, length + len(character)
    return "".join([*parts, text[begin:]]), Places(at, longer)


def _blanked(text: str) -> str:
    """With blanks for HTML's tags and comments."""
    return TAG.sub(_without_tag, text) if "<" in text else text


def _without_tag(match: re.Match[str]) -> str:
    """Blanks for a comment or a tag of HTML."""
    if match[1] is None or match[1].lower() in ELEMENTS:
        return " " * len(match[0])
    return match[0]


def _character(entity: re.Match[str]) -> str:
    """In plain marks; an entity that HTML does not know stays as it is."""
    return _plain_marks(html.unescape(entity[0]))


def _plain_marks(text: str) -> str:
    """A character for each character."""
    if not text.isascii():
        text = text.translate(MARKS)
    return APOSTROPHE.sub("'", text) if "`" in text or "´" in text else text

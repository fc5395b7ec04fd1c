"""Text as the training data spells it: isn’t, isn`t and isnt are read as isn't, ﬁne as fine, sooo as so.

Phones and word processors write characters that the datasets hardly contain. A model that has never seen "n’t"
misses the negation.
"""

import html
import re
import unicodedata
from functools import lru_cache

LETTER = r"[^\W\d_]"
"""A letter of any script, in a regular expression."""
MARKS = str.maketrans(
    dict.fromkeys("‘’‛ʹʼ′＇\x91\x92", "'")
    | dict.fromkeys("“”„‟″＂\x93\x94", '"')
    | dict.fromkeys("‐‑", "-")
    | {chr(code + 0xFEE0): chr(code) for code in range(ord("!"), ord("~") + 1)}
    | dict(zip("、。", ",.", strict=True))
)
"""\x91 to \x94 are quotation marks of Windows-1252 that were read as Latin-1. Full-width characters are those of East
Asian keyboards."""
DASHES = str.maketrans({"–": "-", "‒": "-", "−": "-", "—": "--", "―": "--"})
_INVISIBLE = r"\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
INVISIBLE = re.compile(f"[{_INVISIBLE}]+")
"""Soft hyphens, zero-width spaces, joiners, marks of direction, variation selectors: nothing of them is seen."""
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
TAG = re.compile(
    r"<!--(?:[^<-]|<(?!!--)|-(?!->))*+-->"  # up to another beginning: the time stays linear
    r"|</?([a-z][a-z0-9]*)"
    r"(?:\s++(?:async|autoplay|checked|compact|controls|data-[\w-]+|default|defer|disabled|download|hidden|inert|ismap"
    r"|itemscope|loop|multiple|muted|noshade|nowrap|open|readonly|required|reversed|selected)(?=[\s/>]))*"
    r"(?:\s++[a-z][\w:.-]*\s*=[^<>]{0,300})?\s*/?>",
    re.IGNORECASE,
)
"""A comment, or what may be a tag, with its name. Of attributes without a value only HTML's count: "a <b and c> d"."""
_NEGATED = "AI|ARE|CA|COULD|DID|DOES|DO|HAD|HAS|HAVE|IS|MIGHT|MUST|NEED|SHOULD|WAS|WERE|WO|WOULD"
SHOUTED = re.compile(rf"\b(?:{_NEGATED})NT\b")
"""spaCy's tokenizer splits "Dont" and "dont", but not "DONT"."""
MISPLACED = re.compile(rf"\b({_NEGATED})'(n)(?=t\b)", re.IGNORECASE)
"""The apostrophe of "did'nt"."""
ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]{2,8});")
READ = 32_768
"""Characters of a text that are made plain: of a longer one no more is read, unless it is mostly blanks."""
REMEMBERED_WORDS = 16_384
"""Words whose plain spelling is kept, in about 200 bytes each."""
LONGEST_KEPT = 24
"""Characters of a token, or of a run between white space, of which more is kept."""


def plain(text: str) -> str:
    """The text as the tokenizer takes it, of the same length.

    With plain quotation marks, apostrophes and hyphens, blanks for HTML's tags and comments and for invisible
    characters outside a word, "Dont" for "DONT" and "didn't" for "did'nt".
    """
    if len(text) > READ:
        return plain(text[:READ]) + text[READ:]
    if not text.isascii() or "<" in text or "`" in text:
        text = _blanked(_plain_marks(text))
    if "'n" in text or "'N" in text:
        text = MISPLACED.sub(r"\1\2'", text)
    return SHOUTED.sub(lambda word: word[0].capitalize(), text) if "NT" in text else text


@lru_cache(maxsize=REMEMBERED_WORDS)
def plain_word(token: str) -> str:
    """A token as vocabularies list it: in plain marks, compatible characters (NFKC) and no invisible ones.

    The tokenizer splits "isnt" into "is" and "nt", which stands for "n't", and "is'nt" into "is" and "'nt".
    """
    word = _plain_marks(ENTITY.sub(_character, token) if "&" in token else token)
    if not word.isascii():
        compatible = unicodedata.normalize("NFKC", word).translate(DASHES)
        compatible = INVISIBLE.sub("", compatible)
        word = compatible if compatible.split() == [compatible] else word
    return f"{word[-2]}'{word[-1]}" if word.lower() in ("nt", "'nt") else word


def shortened(word: str) -> tuple[str, ...]:
    """Other spellings of a stretched word ("gooood"): each run of three or more letters as two, then as one.

    Empty for other words.
    """
    if not STRETCHED.search(word):
        return ()
    return STRETCHED.sub(r"\1\1", word), STRETCHED.sub(r"\1", word)


def unescape(text: str) -> tuple[str, list[tuple[int, int]]]:
    """The text with one character for each HTML entity; and of each its index there and the entity's length.

    What the entities spell is read as in `plain`: "&lt;b&gt;" is a tag.
    """
    parts, places = [], []
    begin = length = 0
    for entity in ENTITY.finditer(text, 0, READ):
        character = _character(entity)
        if len(character) == 1:
            parts += [text[begin : entity.start()], character]
            length += entity.start() - begin
            places.append((length, len(entity[0])))
            begin, length = entity.end(), length + 1
    return _blanked("".join([*parts, text[begin:READ]])) + text[READ:], places


def _blanked(text: str) -> str:
    """With blanks for HTML's tags and comments, and for invisible characters outside a word."""
    if "<" in text:
        text = TAG.sub(_without_tag, text)
    return text if text.isascii() else INVISIBLE.sub(_outside_words, text)


def _outside_words(match: re.Match[str]) -> str:
    """Blanks, so that punctuation and contractions are split off; inside a word `plain_word` drops the characters."""
    text, (start, stop) = match.string, match.span()
    inside = start > 0 and stop < len(text) and _spells(text[start - 1]) and _spells(text[stop])
    return match[0] if inside else " " * len(match[0])


def _spells(character: str) -> bool:
    """Whether it is a letter, a mark on one, or a digit."""
    return unicodedata.category(character)[0] in "LMN"


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

"""The pages use plain turns: a subject, a verb, an object."""

import re
from pathlib import Path

import pytest

from tests.process import ROOT

BANNED = {
    r"beside": "next to, besides, against, outside",
    r"(?:is|are|was|were|be|been|being) asked(?! for)": "is measured, is wanted, is queried",
    r"as (?:it|they) (?:is|are|was|were)": "unchanged, whole",
    r"of before": "earlier, from before ..",
    r"by itself|by themselves": "alone, on its own",
    r"of (?:its|their) own": "separate, or name whose",
    r"on top of (?:it|them|that)": "say what is added to what",
    r"to be had": "available",
    r"turned round": "swapped, reversed",
    r"in the place of": "in place of, instead of",
    r"taken back": "reverted",
    r"until now": "before, with the date or commit",
    r"for ever": "always",
    r"(?:that|those|what) which": "what",
    r"one that": "name the thing again",
    r"(?:the|a|first|was|no) found": "name the thing; 'found' is no noun",
    r"read alike|fall alike": "say in what they are equal",
}
"""Turns that stand for a plainer one, and what to write."""
WHAT = re.compile(r"(?:^|[.:;] |- |\| )What [^.?|]*[.:|]")
"""A sentence whose subject is a clause, "What follows .. is refused.": name the thing."""
_CODE = re.compile(r"```.*?```|`[^`\n]*`|\n\n(?: {4}\S.*\n)+|\]\([^)]*\)", re.DOTALL)
_RECORDS = re.compile(r"^(?:[|#]|- Trained on ).*", re.MULTILINE)
WRITTEN_FROM_RECORDS = (
    "docs/notes/results.md",
    "docs/performance.md",
    "docs/reliability.md",
    "docs/results.md",
)
"""Their tables, headings and notes on data are those of the records."""


def _prose(page: Path) -> str:
    text = _CODE.sub(" CODE ", page.read_text(encoding="utf-8"))
    from_records = page.relative_to(ROOT).as_posix() in WRITTEN_FROM_RECORDS
    return _RECORDS.sub("", text) if from_records else text


PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/notes/*.md")])
TEXTS = {page.relative_to(ROOT).as_posix(): _prose(page) for page in PAGES}


def banned(text: str) -> list[str]:
    """What stands in a text in place of a plainer turn, with some words around it."""
    turns = rf"\b(?:{'|'.join(BANNED)})\b"
    flat = re.sub(r"[ \n]+", " ", text)
    return [
        flat[max(0, hit.start() - 40) : hit.end() + 40]
        for hit in re.finditer(turns, flat, re.IGNORECASE)
    ] + [hit[0] for hit in WHAT.finditer(flat)]


@pytest.mark.parametrize("page", TEXTS)
def test_a_page_has_none_of_the_banned_turns(page: str) -> None:
    assert banned(TEXTS[page]) == []

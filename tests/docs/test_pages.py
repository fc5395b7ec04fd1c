"""Every page: plain turns, a subject, a verb, an object; links that lead somewhere."""

import re

import pytest

from tests.process import ROOT

BANNED = (
    r"beside|(?:is|are|was|were|be|been|being) asked(?! for)|as (?:it|they) (?:is|are|was|were)|of before|by itself",
    r"by themselves|of (?:its|their) own|on top of (?:it|them|that)|to be had|turned round|in the place of|taken back",
    r"until now|for ever|(?:that|those|what) which|one that|(?:the|a|first|was|no) found|read alike|fall alike",
)
"""Turns that stand for plainer ones: "next to", "unchanged", "earlier", "alone", "swapped", "always"."""
WHAT = re.compile(r"(?:^|[.:;] |- |\| )What [^.?|]*[.:|]")
"""A sentence whose subject is a clause, "What follows .. is refused.": name the thing."""
_CODE = re.compile(r"```.*?```|`[^`\n]*`|\n\n(?: {4}\S.*\n)+|\]\([^)]*\)", re.DOTALL)
_RECORDS = re.compile(r"^(?:[|#]|- Trained on ).*", re.MULTILINE)
_NAMES = ("notes/results", "performance", "reliability", "results")
WRITTEN_FROM_RECORDS = [f"docs/{name}.md" for name in _NAMES]
"""Their tables, headings and notes on data are those of the records."""


PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/notes/*.md")])
TEXTS = {page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8") for page in PAGES}


@pytest.mark.parametrize("page", TEXTS)
def test_a_page_has_none_of_the_banned_turns(page: str) -> None:
    """With some words around it, what stands there in place of a plainer turn is shown."""
    prose = _CODE.sub(" CODE ", TEXTS[page])
    prose = _RECORDS.sub("", prose) if page in WRITTEN_FROM_RECORDS else prose
    flat = re.sub(r"[ \n]+", " ", prose)
    found = re.finditer(rf"\b(?:{'|'.join(BANNED)})\b", flat, re.IGNORECASE)
    assert [flat[max(0, hit.start() - 40) : hit.end() + 40] for hit in found] == []
    assert [hit[0] for hit in WHAT.finditer(flat)] == []


@pytest.mark.parametrize("page", TEXTS)
def test_links_lead_to_a_file_or_a_heading(page: str) -> None:
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", TEXTS[page]):
        path = (ROOT / page).parent / target if target else ROOT / page
        assert path.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            anchors = [re.sub(r"[^\w -]", "", one).lower().replace(" ", "-") for one in headings]
            assert anchor in anchors

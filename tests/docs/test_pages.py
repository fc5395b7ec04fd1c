"""Every page: its links lead somewhere, every command is described."""

import re

import pytest
from typer.main import get_command

from heedful.cli.main import app
from tests.process import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/notes/*.md")])
TEXTS = {page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8") for page in PAGES}


@pytest.mark.parametrize("page", TEXTS)
def test_links_lead_to_a_file_or_a_heading(page: str) -> None:
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", TEXTS[page]):
        path = (ROOT / page).parent / target if target else ROOT / page
        assert path.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            anchors = [re.sub(r"[^\w -]", "", one).lower().replace(" ", "-") for one in headings]
            assert anchor in anchors


def test_every_command_is_described() -> None:
    text = "\n".join(TEXTS.values())
    for name in get_command(app).commands:  # type: ignore[attr-defined]  # a group's
        assert f"heedful {name}" in text, name

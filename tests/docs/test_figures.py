"""docs/figures: each is small, drawn by the command, and is described in words."""

import re
from pathlib import Path

from tools.figures import FIGURES

FOLDER = Path("docs/figures")
PAGE = Path("docs/figures.md").read_text(encoding="utf-8")


def test_each_has_a_section_that_says_model_and_paper() -> None:
    files = {file.name for file in FOLDER.iterdir()}
    assert set(re.findall(r"!\[.+?\]\(figures/(.+?)\)", PAGE)) == files
    for section in PAGE.split("\n## ")[1:]:
        assert "paper" in section


def test_each_is_drawn_by_the_command_and_small() -> None:
    known = {one.file for one in FIGURES}
    for file in FOLDER.iterdir():
        assert file.name in known
        assert file.stat().st_size <= 60_000


def test_the_page_names_those_that_are_not_there_yet() -> None:
    for one in FIGURES:
        assert one.file in PAGE

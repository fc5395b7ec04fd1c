"""Every page: its links lead somewhere, every command is described."""

import re

import pytest
import typer
from typer.main import get_command

from heedful.cli import fit
from heedful.cli.main import app
from tests.process import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/notes/*.md")])
FOLDERS = "app|benchmarks|cli|configs|deploy|export|library|models|results|runtime|scripts|tests|text|tools|training"
MADE = (
    "models/swem.py",
    "configs/swem-sst2.toml",
    "results/performance/gpu.json",
    "results/suite/NAME.json",
)
"""Files that a page tells how to make."""
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


NOTES = "docs/notes/"
"""Its pages name files of their day."""


@pytest.mark.parametrize("page", [page for page in TEXTS if not page.startswith(NOTES)])
def test_files_that_are_named_exist(page: str) -> None:
    named = re.findall(rf"(?<![\w./-])((?:{FOLDERS})/[\w/-]+\.[a-z]+)\b", TEXTS[page])
    assert [name for name in named if name not in MADE and not (ROOT / name).exists()] == []


def test_every_page_is_linked_from_the_readme_or_a_page_that_is() -> None:
    reached, new = {"README.md"}, ["README.md"]
    while new:
        page = new.pop()
        folder = (ROOT / page).parent
        linked = re.findall(r"\]\(([\w./-]+\.md)", TEXTS[page])
        found = {(folder / one).resolve().relative_to(ROOT).as_posix() for one in linked}
        new += sorted(found - reached)
        reached |= found
    assert reached == set(TEXTS)


def test_every_command_is_described() -> None:
    text = "\n".join(TEXTS.values())
    for name in get_command(app).commands:  # type: ignore[attr-defined]  # a group's
        assert f"heedful {name}" in text, name


def test_every_option_of_fit_is_in_its_page() -> None:
    """docs/training.md says so."""
    command = typer.Typer(add_completion=False)
    command.command()(fit.command)
    names = [name for one in get_command(command).params for name in one.opts]
    options = [name for name in names if name.startswith("--")]
    assert len(options) > 15
    assert [name for name in options if name not in TEXTS["docs/fit.md"]] == []

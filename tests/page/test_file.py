"""What `heedful explain` writes, opened from the disk in a real Chromium."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from heedful.cli.explain import command
from tests.page.accessible import accessible

KIDS = "Two kids at a ballgame wash their hands"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("written") / "pair.html"
    command(KIDS, "The children are asleep at home", "ms-san-nli", to=file, models=Path("bundles"))
    return file


def test_it_opens_from_the_disk_and_asks_for_nothing(written: Path, browser: Browser) -> None:
    """The file comes first: Playwright's loop runs from then on."""
    said: list[str] = []
    asked: list[str] = []
    page = browser.new_page(viewport={"width": 360, "height": 740})
    page.on("console", lambda message: said.append(message.text))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(written.as_uri())
    assert page.title() == "What ms-san-nli attends to"
    assert page.locator("figure[data-map]").count() == 13  # six heads a side, and across
    assert page.locator("path.arc").count() == 7 + 5
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert (said, asked) == ([], [written.as_uri()])
    accessible(page)
    page.close()

"""Debian's Chromium, driven by Playwright."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.builders import build_bundle, build_models
from tests.page.visiting import HOST, WHY, explained, follow, visit
from tests.process import Process, tool


@pytest.fixture(scope="package")  # it keeps an event loop running, which other tests must not meet
def browser() -> Iterator[Browser]:
    chromium = tool("chromium")
    with sync_playwright() as playwright:
        # As root in a container the sandbox fails, and /dev/shm is small.
        flags = ["--no-sandbox", "--disable-dev-shm-usage"]
        flags.append(f"--host-resolver-rules=MAP {HOST} 127.0.0.1")
        yield playwright.chromium.launch(executable_path=chromium, args=flags)


@pytest.fixture(scope="module")
def opened(browser: Browser, shipped: str) -> Iterator[Page]:
    with visit(browser, shipped) as page:
        yield page


@pytest.fixture
def page(opened: Page) -> Iterator[Page]:
    """The page as the module's tests before have left it, with its usual window and service."""
    yield opened
    opened.unroute_all(behavior="ignoreErrors")
    opened.set_viewport_size({"width": 1200, "height": 900})
    opened.mouse.move(0, 0)


@pytest.fixture
def why(page: Page) -> Page:
    """The last tab with its example."""
    follow(page, WHY)
    explained(page)
    return page


@pytest.fixture(scope="session")
def relating(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a service that cuts long texts, with a tiny relatedness model, a classifier that abstains unless
    it is certain, and one whose texts may have several labels."""
    folder = tmp_path_factory.mktemp("relating")
    models = folder / "bundles"
    parser = build_models(models)
    build_bundle(models, parser, explain=True, abstain=1.0)
    tags = ("praise", "price", "taste")
    build_bundle(models, parser, name="tiny-tags", labels=tags, explain=True, multi_label=True)
    flags = {"port": "0", "models": str(models), "threads": "1", "truncate": "true"}
    with closing(Process(folder / "log", flags, {})) as process:
        yield process.ready()

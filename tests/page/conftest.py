"""Debian's Chromium, driven by Playwright."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.page.visiting import HOST, visit
from tests.process import tool


@pytest.fixture(scope="module")  # it keeps an event loop running, which other tests must not meet
def browser() -> Iterator[Browser]:
    chromium = tool("chromium")
    with sync_playwright() as playwright:
        # As root in a container the sandbox fails, and /dev/shm is small.
        yield playwright.chromium.launch(
            executable_path=chromium,
            args=[
                "--no-sandbox",
                "--disable-dev-shm-usage",
                f"--host-resolver-rules=MAP {HOST} 127.0.0.1",
            ],
        )


@pytest.fixture
def page(browser: Browser, shipped: str) -> Iterator[Page]:
    with visit(browser, shipped) as opened:
        yield opened

"""Debian's Chromium, driven by Playwright."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.process import tool


@pytest.fixture(scope="module")  # it keeps an event loop running, which other tests must not meet
def browser() -> Iterator[Browser]:
    chromium = tool("chromium")
    with sync_playwright() as playwright:
        # As root in a container the sandbox fails, and /dev/shm is small.
        yield playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )

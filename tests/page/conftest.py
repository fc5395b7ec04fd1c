"""Debian's Chromium, driven by Playwright."""

import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

CHROMIUM = shutil.which("chromium")


@pytest.fixture(scope="module")  # it keeps an event loop running: none of another test's may
def browser() -> Iterator[Browser]:
    if not CHROMIUM and "CI" not in os.environ:
        pytest.skip("Chromium is not installed")
    with sync_playwright() as playwright:
        # As root in a container the sandbox does not come up, and /dev/shm is small.
        yield playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )

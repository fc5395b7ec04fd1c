"""axe, over a page that is open."""

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

OPTIONS = {
    "resultTypes": ["violations"],
    # A later axe has it among its defaults.
    "rules": {"label-content-name-mismatch": {"enabled": True}},
}


def accessible(page: Page) -> None:
    """axe finds nothing serious or critical."""
    violations = Axe().run(page, options=OPTIONS).response["violations"]
    bad = [
        (violation["id"], violation["impact"])
        for violation in violations
        if violation["impact"] in ("serious", "critical")
    ]
    assert bad == []

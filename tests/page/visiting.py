"""A page that is opened, watched and closed."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page, Response, Route, expect

PATIENCE = 60_000
"""Milliseconds that the page is waited for: on a busy machine an explanation takes long, as its threads give way."""
expect.set_options(timeout=PATIENCE)
HOST = "heedful.test"
"""A name of this machine in the tests' browser. A page from there is no secure context."""
FILM = "The film is not without charm, but it never quite comes alive"
WHY = f"tab=why&model=ms-san-sentiment&why-text={FILM}"
"""The link that opens the last tab with its example."""
REFUSED = re.compile("status of (422|502|503)|net::ERR_FAILED")
FOLLOW = """link => new Promise(done => {
    addEventListener("hashchange", () => done(), { once: true });
    history.replaceState(null, "", "#");
    location.hash = link;
})"""


def accessible(page: Page) -> None:
    """axe finds nothing serious or critical."""
    # A later axe has this rule among its defaults.
    rules = {"label-content-name-mismatch": {"enabled": True}}
    options = {"resultTypes": ["violations"], "rules": rules}
    violations = Axe().run(page, options=options).response["violations"]
    found = [(violation["id"], violation["impact"]) for violation in violations]
    assert [one for one in found if one[1] in ("serious", "critical")] == []


@contextmanager
def visit(browser: Browser, address: str, **options: Any) -> Iterator[Page]:
    """The page, opened and answered; at its end nothing was said on the console and no other host was asked."""
    context = browser.new_context(viewport={"width": 1200, "height": 900}, **options)
    context.set_default_timeout(PATIENCE)
    opened = context.new_page()
    messages: list[str] = []
    urls: list[str] = []
    opened.on("console", lambda message: messages.append(message.text))
    opened.on("pageerror", lambda error: messages.append(str(error)))
    opened.on("request", lambda request: urls.append(request.url))
    opened.goto(address)
    expect(opened.locator(".answer:visible h2").first).to_be_visible()
    expect(opened.locator("#status")).to_have_text("")
    yield opened
    urls = [url for url in urls if not url.startswith("blob:")]  # made by the page itself
    assert {urlsplit(url).netloc for url in urls} == {urlsplit(address).netloc}
    # Chromium notes every answer that is no 2xx, and none; the tests that are refused expect it.
    assert [line for line in messages if not REFUSED.search(line)] == []
    context.close()


def follow(page: Page, link: str) -> Locator:
    """The tab's answer to a link that is followed in the open page."""
    page.evaluate(FOLLOW, link)
    answer = page.locator(f"#answer-{parse_qs(link)['tab'][0]}:not([aria-busy])")
    expect(answer.locator("h2").first).to_be_visible()
    return answer


def enter(page: Page | Locator, field: str, text: str) -> None:
    """Type a text in place of what the field holds, and ask."""
    page.locator(field).last.fill(text)
    page.locator(field).last.press("Enter")


def attach(page: Page, field: str, name: str, content: str | bytes) -> None:
    """Choose a file of this name and content."""
    content = content if isinstance(content, bytes) else content.encode()
    file: Any = {"name": name, "mimeType": "text/plain", "buffer": content}
    page.locator(field).set_input_files(file)


def save(page: Page, part: Page | Locator, button: str, file: Path) -> None:
    """Download what a button of this part of the page saves; it has the file's name."""
    with page.expect_download() as download:
        part.get_by_role("button", name=button).click()
    assert download.value.suggested_filename == file.name
    download.value.save_as(file)


def ask_service(page: Page, path: str, **body: Any) -> Any:
    """The service's answer to a request without the page."""
    return page.request.post(urljoin(page.url, f"/{path}"), data=body).json()


def width_of(page: Page) -> int:
    """The width of the page, including what can be scrolled to, in pixels."""
    width: int = page.evaluate("document.documentElement.scrollWidth")
    return width


def explained(page: Page) -> Locator:
    """The answer of the last tab, when it has come."""
    answer = page.locator("#answer-why:not([aria-busy])")
    expect(answer.locator(".picture").first).to_be_visible()
    return answer


def answer_again(page: Page, response: Response) -> Any:
    """The service's answer, requested a second time: Chromium does not keep all answers' bodies."""
    request = response.request
    again = page.request.post(request.url, data=request.post_data_json)
    assert again.status == response.status
    return again.json()


def below_a_path(route: Route) -> None:
    """Forwards requests like a proxy that serves the service at /proxied/."""
    route.fulfill(response=route.fetch(url=route.request.url.replace("/proxied/", "/")))

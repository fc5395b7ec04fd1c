"""The page where something is in the way: a text, the browser, or the service."""

import json
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.builders import build_bundle, build_parser
from tests.page.visiting import WHY, answer_again, attach, enter, explained, follow, visit
from tests.process import HOLDING, Process, tool

CUT = "1 text is longer than the model reads: only its beginning was read."
LONG = "The film that we saw was good and " * 20
"""160 tokens: more than are explained, fewer than the models read."""


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[Process]:
    """A service with an API key, "k1", and one tiny classifier, which loads while the process is held."""
    models = tmp_path / "bundles"
    build_bundle(models, build_parser(models / "parser"), explain=True)
    flags = {"port": "0", "models": str(models), "threads": "1", "processes": "1"}
    process = Process(tmp_path / "log", flags, {"HEEDFUL_API_KEY": "k1", **HOLDING})
    with closing(process):
        yield process


def test_a_text_that_is_too_long_is_counted_and_cut_and_a_blank_one_named(why: Page) -> None:
    """The tokens that /tokenize counts, and a button that asks with the beginning."""
    enter(why, "#why-text", LONG)
    error = why.locator("#error")
    expect(error).to_contain_text("160 words and punctuation marks; each word is weighed in")
    expect(error).to_be_in_viewport()  # next to the input,
    expect(why.locator("#answer-why > *")).to_have_count(0)  # and no answer to another
    error.get_by_role("button", name="Cut it after 128").click()
    expect(explained(why).locator(".tokens li")).to_have_count(128)
    expect(error).to_have_text("")
    enter(why, "#why-text", "  ")
    expect(error).to_have_text("The text is blank: write something first")

    follow(why, "tab=label&model=ms-san-sst2&text=A+film")
    enter(why, "#text", "dull " * 312)
    expect(error).to_contain_text("ms-san-sst2 reads 256")
    error.get_by_role("button", name="Cut it after 256").click()
    expect(why.locator("#answer-label:not([aria-busy]) h2")).to_have_text("negative")
    expect(why.locator("#answer-label .refused")).to_have_text(CUT)

    why.get_by_role("tab", name="Compare").click()
    expect(why.locator("#answer-compare:not([aria-busy]) h2").first).to_be_visible()
    enter(why, "#second", LONG)
    answer = why.locator("#answer-compare:not([aria-busy])")
    expect(answer).to_contain_text("sentences of up to 128 words")  # compared, without pictures
    expect(answer.locator(".measures .bar")).to_have_count(3)
    why.locator("#second").fill("A film")


def test_the_services_warning_is_shown(why: Page) -> None:
    enter(why, "#why-text", "das ist ein schöner Film gewesen")
    warning = "This does not look like English, the only language that ms-san-sentiment reads"
    expect(why.locator("#answer-why .refused")).to_contain_text(warning)
    expect(why.locator("#answer-why .trust")).to_have_count(0)
    why.get_by_role("tab", name="Search").click()
    attach(why, "#search-file", "a.txt", "мир и я\n" * 70 + "A dog")
    why.locator("#query").fill("Привет мир")
    expect(why.locator("#answer-search")).to_contain_text("This does not look like English")
    why.locator("#query").fill("a dog")
    expect(why.locator(".finding .refused").first).to_contain_text("70 of 71 texts do not look")
    expect(why.locator(".results .refused")).to_have_count(9)  # all but the one that is English


BROKEN = {
    "nothing": (None, "The service cannot be reached"),
    "proxy": ((502, "<h1>Bad gateway</h1>"), "answered with the error 502: try again"),
    "service": ((503, '{"error": {"message": "too many", "code": "x"}}'), "Too many"),
}
"""The service's answer to a question, and the page's message."""


def refuse(answer: tuple[int, str] | None, route: Route) -> None:
    if answer:
        route.fulfill(status=answer[0], body=answer[1])
    else:
        route.abort()


def test_a_service_that_does_not_answer(page: Page) -> None:
    """The page says what happened, and answers the next question."""
    page.get_by_role("tab", name="Search").click()
    for name, (answer, message) in BROKEN.items():
        page.route("**/embed", partial(refuse, answer))
        page.locator("#query").fill(f"a question of the kind {name}")
        expect(page.locator("#error")).to_contain_text(message)
        expect(page.locator(".old .results")).to_be_visible()  # pale: of the question before
        page.unroute("**/embed")
        page.locator("#query").fill("another question")
        expect(page.locator("#error")).to_have_text("")


def test_a_question_that_another_tab_stopped_is_asked_again(why: Page) -> None:
    """The other tab asks though it has an answer; the held request has ended before the route goes, as
    Chromium would send it on then, and its response would be taken for that of the second one."""

    def hold(route: Route) -> None:
        if "trec" not in (route.request.post_data or ""):
            route.continue_()

    why.route("**/explain", hold)
    why.locator("#model-why").select_option("ms-san-trec")
    with why.expect_event("requestfailed", lambda request: request.url.endswith("/explain")):
        why.get_by_role("tab", name="Label").click()
        enter(why, "#text", "A film")
    expect(why.locator("#answer-label:not([aria-busy]) h2")).to_be_visible()
    why.unroute("**/explain")
    with why.expect_response("**/explain") as answered:
        why.get_by_role("tab", name="Why").click()
    result = answer_again(why, answered.value)
    assert result["model"] == "ms-san-trec"
    expect(explained(why).locator("h2").first).to_contain_text(result["prediction"]["label"])


LATER = "() => new Promise(done => setTimeout(done, 150))"
"""A timer that was set earlier, for 120 milliseconds, has run before this one."""


def test_a_prior_of_a_tab_that_was_left_stops_no_other_question(why: Page) -> None:
    follow(why, "tab=label&model=ms-san-sst2&text=A+film")
    follow(why, WHY)
    explained(why)
    routes: list[Route] = []
    why.route("**/classify", lambda route: routes.append(route))
    with why.expect_request("**/classify"):
        why.evaluate(
            """() => {
                document.querySelector("#answer-label").replaceChildren(); // it is asked again
                document.querySelector("#answer-why input[data-prior=direction]").click();
                document.querySelector("#tab-label").click();
            }"""
        )
    why.evaluate(LATER)  # the page would ask with the prior
    for route in routes:
        route.continue_()
    expect(why.locator("#answer-label h2")).to_be_visible()
    why.get_by_role("tab", name="Why").click()  # it is asked again
    expect(explained(why).locator("input[data-prior=direction]")).to_be_checked()


def test_a_prior_just_before_another_question_does_not_replace_it(why: Page) -> None:
    """Nor does a quick second question leave the first one's answer."""
    why.locator("#why-text").fill("Another question")
    with why.expect_request("**/explain") as request:
        why.evaluate(
            """() => {
                document.querySelector("#answer-why input[data-prior=direction]").click();
                document.querySelector("form[data-tab=why] [type=submit]").click();
            }"""
        )
    assert (request.value.post_data_json or {})["inputs"] == "Another question"
    why.evaluate(LATER)
    expect(explained(why).locator(".tree .word")).to_have_text(["Another", "question"])
    assert "why-text=Another+question" in why.url
    enter(why, "#why-text", "A bright film")
    enter(why, "#why-text", "A dull film")
    expect(explained(why).locator(".tree .word")).to_have_text(["A", "dull", "film"])


def test_what_the_service_cuts_is_said(relating: str, browser: Browser) -> None:
    """The service cuts texts by its setting; the last tab's requests switch that off."""
    with visit(browser, f"{relating}/#tab=label&text={'good+' * 20}") as page:
        expect(page.locator("#answer-label .refused")).to_have_text(CUT)
        page.get_by_role("tab", name="Why").click()
        expect(page.locator("#answer-why .picture").first).to_be_visible()
        enter(page, "#why-text", "good " * 20)
        expect(page.locator("#error")).to_contain_text("The text has 20 words")


def test_a_browser_that_keeps_no_site_data(browser: Browser, shipped: str, tmp_path: Path) -> None:
    blocked = {"profile": {"default_content_setting_values": {"cookies": 2}}}
    (tmp_path / "Default").mkdir()
    (tmp_path / "Default/Preferences").write_text(json.dumps(blocked))
    context = browser.browser_type.launch_persistent_context(
        tmp_path, executable_path=tool("chromium"), args=["--no-sandbox", "--disable-dev-shm-usage"]
    )
    page = context.new_page()
    page.goto(shipped)
    expect(page.locator(".results li").first).to_be_visible()
    page.select_option("#theme", "dark")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    context.close()


def test_a_page_opened_before_the_models_are_loaded(browser: Browser, locked: Process) -> None:
    """The service needs a key too, and no model answers the third tab."""
    errors: list[str] = []
    with locked.held():
        url = locked.url()
        page = browser.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(url)
        expect(page.locator("#error")).to_have_text("The service needs an API key.")
        expect(page.locator("#api-key")).to_be_focused()
        page.keyboard.type("k2")
        page.keyboard.press("Enter")
        expect(page.locator("#error")).to_have_text("The service does not know this API key.")
        page.locator("#api-key").fill("schlüssel€")
        page.locator("#api-key").press("Enter")  # the browser says what is wrong
        assert page.locator("#api-key").evaluate("one => one.matches(':invalid')")
        enter(page, "#api-key", "k1")
        expect(page.locator("#error")).to_contain_text("The service is starting")
        expect(page.locator("#error")).to_contain_text("asks again")
    expect(page.locator(".results li").first).to_be_visible()
    page.get_by_role("tab", name="Label").click()
    expect(page.locator("#answer-label h2")).to_be_visible()  # with the classifier
    page.get_by_role("tab", name="Compare").click()
    expect(page.locator("#panel-compare .model")).to_contain_text("No loaded model says whether")
    expect(page.locator("#model-compare")).to_be_hidden()
    page.get_by_role("tab", name="Search").click()
    page.locator("#query").fill("two dogs")  # no model says what follows
    page.wait_for_url("**query=two+dogs**")
    expect(page.locator("#error")).to_have_text("")
    page.goto(f"{url}/#tab=why&model=ms-san-nli&why-text=A+man&why-second=A+dog")
    expect(page.locator("#error")).to_contain_text("the model ms-san-nli, which is not loaded")
    assert errors == []
    page.close()

"""The page where something is in the way: a text, the browser, or the service."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.builders import build_bundle, build_parser
from tests.page.visiting import answer_again, submit
from tests.process import HOLDING, Process, tool

LONG = "The film that we saw was good and " * 20
"""160 tokens: more than are explained, fewer than the models read."""


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[Process]:
    """A service with an API key, "k1", and one tiny classifier, which loads while the process is held."""
    models = tmp_path / "bundles"
    models.mkdir()
    build_bundle(models, build_parser(models / "parser"), explain=True)
    flags = {"port": "0", "models": str(models), "threads": "1", "processes": "1"}
    process = Process(tmp_path / "log", flags, {"HEEDFUL_API_KEY": "k1", **HOLDING})
    try:
        yield process
    finally:
        process.close()


def test_a_refusal_is_said_in_the_services_words(page: Page) -> None:
    submit(page, "Similarity", "Compare")
    page.locator("#sentences").fill("word " * 5000)
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("#error")).to_contain_text("tokens")
    expect(page.locator("#error")).to_be_in_viewport()  # next to the input,
    expect(page.locator("#answer-similarity > *")).to_have_count(0)  # and no answer to another
    page.locator("#sentences").fill("A line.\n" * 151)
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("#error")).to_contain_text("up to 150")
    page.locator("#sentences").fill("One.\nTwo.")
    submit(page, "Similarity", "Compare")
    expect(page.locator("#error")).to_have_text("")


def test_a_sentence_that_is_too_long_is_counted_from_one(page: Page) -> None:
    page.get_by_role("tab", name="Similarity").click()
    page.locator("#sentences").fill("\n".join(["a dog", "", "dog " * 300]))
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("Sentence 2 is longer")  # it said inputs[1]


def test_a_text_too_long_to_be_explained_is_answered(page: Page) -> None:
    answer = page.locator("#answer-classification:not([aria-busy])")
    page.locator("#text").fill(LONG)
    with page.expect_response("**/classify") as answered:
        page.locator("#text").press("Enter")
    label = answer_again(page, answered.value)[0]["label"]
    expect(answer.locator("h2")).to_have_text(label)
    expect(answer).to_contain_text("explained up to 128")
    expect(answer.get_by_role("button", name="Save SVG")).to_have_count(0)
    expect(page.locator("#error")).to_have_text("")

    page.get_by_role("tab", name="Similarity").click()
    page.locator("#sentences").fill(f"{LONG}\nA short one.")
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("#error")).to_contain_text("explained up to 128")
    expect(page.locator("#answer-similarity .cell")).to_have_count(4)
    expect(page.locator("#answer-similarity .picture")).to_have_count(0)


def test_the_services_warning_is_shown(page: Page) -> None:
    page.locator("#text").fill("das ist ein schöner Film gewesen")
    with page.expect_response("**/explain") as answered:
        page.locator("#text").press("Enter")
    warning = answered.value.headers["x-warning"]
    expect(page.locator("#answer-classification .refused")).to_have_text(warning)
    expect(page.locator("#answer-classification .trust")).to_have_count(0)
    page.get_by_role("tab", name="Similarity").click()
    page.locator("#sentences").fill("Привет мир\nTwo kids")
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("#answer-similarity > .refused")).to_contain_text("1 of 2 inputs")


def test_a_question_that_another_tab_stopped_is_asked_again(page: Page) -> None:
    def hold(route: Route) -> None:
        if "trec" not in (route.request.post_data or ""):
            route.continue_()

    page.route("**/explain", hold)
    page.locator("#model-classification").select_option("ms-san-trec")
    page.get_by_role("tab", name="Entailment").click()
    expect(page.locator("#answer-entailment .picture").first).to_be_visible()
    page.unroute("**/explain")
    with page.expect_response("**/explain") as answered:
        page.get_by_role("tab", name="Classification").click()
    found = answer_again(page, answered.value)
    assert found["model"] == "ms-san-trec"
    label = found["prediction"]["label"]
    expect(page.locator("#answer-classification h2").first).to_have_text(label)


def test_a_prior_of_a_tab_that_was_left_stops_no_other_question(page: Page) -> None:
    held: list[Route] = []
    page.route("**/explain", lambda route: held.append(route))
    prior = "#answer-classification input[data-prior=direction]"
    with page.expect_request("**/explain") as asked:
        page.evaluate(
            "prior => { document.querySelector(prior).click(); document.querySelector('#tab-entailment').click(); }",
            prior,
        )
    assert "premise" in (asked.value.post_data or "")
    page.wait_for_timeout(400)  # until the page would ask with the prior
    for route in held:
        route.continue_()
    expect(page.locator("#answer-entailment .picture").first).to_be_visible()
    page.unroute("**/explain")
    page.get_by_role("tab", name="Classification").click()
    expect(page.locator("#answer-classification .picture")).to_be_visible()
    expect(page.locator(prior)).to_be_checked()


def test_a_prior_just_before_another_question_does_not_replace_it(page: Page) -> None:
    answer = page.locator("#answer-classification")
    page.locator("#text").fill("Another question")
    with page.expect_request("**/explain") as asked:
        page.evaluate(
            """() => {
                document.querySelector("#answer-classification input[data-prior=direction]").click();
                document.querySelector("form[data-tab=classification] [type=submit]").click();
            }"""
        )
    assert (asked.value.post_data_json or {})["inputs"] == "Another question"
    page.wait_for_timeout(400)  # until the page would ask with the prior
    expect(answer.locator(".picture h2")).to_have_text("Another question")
    assert "text=Another+question" in page.url


def test_another_model_for_no_text_leaves_no_answer(page: Page) -> None:
    page.locator("#text").fill("")
    page.locator("#model-classification").select_option("ms-san-trec")
    expect(page.locator("#answer-classification > *")).to_have_count(0)


def test_enter_that_ends_a_composition_asks_nothing(page: Page) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.method))
    page.locator("#text").dispatch_event("keydown", {"key": "Enter", "isComposing": True})
    with page.expect_response("**/explain"):
        page.locator("#text").press("Enter")
    assert asked == ["POST"]


def test_a_browser_that_keeps_no_site_data(browser: Browser, shipped: str, tmp_path: Path) -> None:
    blocked = {"profile": {"default_content_setting_values": {"cookies": 2}}}
    (tmp_path / "Default").mkdir()
    (tmp_path / "Default/Preferences").write_text(json.dumps(blocked))
    context = browser.browser_type.launch_persistent_context(
        tmp_path, executable_path=tool("chromium"), args=["--no-sandbox", "--disable-dev-shm-usage"]
    )
    page = context.new_page()
    page.goto(shipped)
    expect(page.locator("#answer-classification .picture")).to_be_visible()
    page.select_option("#theme", "dark")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    context.close()


def test_a_page_opened_before_the_models_are_loaded(browser: Browser, locked: Process) -> None:
    """It needs a key too; and no model does what the second tab asks."""
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
        expect(page.locator("#api-key")).to_be_focused()
        expect(page.get_by_role("link", name="API")).to_be_hidden()
        page.locator("#api-key").fill("schlüssel€")
        page.locator("#api-key").press("Enter")  # the browser says what is wrong
        assert page.locator("#api-key").evaluate("one => one.matches(':invalid')")
        page.locator("#api-key").fill("k1")
        page.locator("#api-key").press("Enter")
        expect(page.locator("#error")).to_contain_text("starting")
        expect(page.locator("#text")).to_be_focused()
        page.get_by_role("button", name="Classify").click()
        expect(page.locator("#error")).to_contain_text("starting")
    expect(page.locator("#answer-classification .picture")).to_be_visible()
    page.get_by_role("tab", name="Entailment").click()
    expect(page.get_by_role("button", name="Judge")).to_be_disabled()
    page.locator("#premise").press("Enter")
    expect(page.locator("#error")).to_have_text("")
    page.goto(f"{url}/#tab=relatedness&model=ms-san-relatedness&first=A+man&second=A+dog")
    expect(page.locator("#error")).to_have_text("No loaded model does what the link asks.")
    expect(page.get_by_role("tab", selected=True)).to_have_text("Relatedness")
    assert errors == []
    page.close()

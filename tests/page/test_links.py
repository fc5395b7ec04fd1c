"""The page's address: it holds the question of the tab that is shown."""

import re
from urllib.parse import urljoin

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.page.visiting import HOST, visit


def copied_link(page: Page, tab: str) -> str:
    """What the tab's button copies."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    actions = page.locator(f"#answer-{tab} .actions")
    actions.get_by_role("button", name="Copy link").click()
    expect(actions.get_by_role("status")).to_have_text("Link copied.")
    expect(actions.get_by_role("status")).to_be_in_viewport()
    found: str = page.evaluate("navigator.clipboard.readText()")
    return found


def test_a_link_gives_the_same_answer(page: Page, browser: Browser) -> None:
    page.get_by_role("tab", name="Entailment").click()
    page.locator("#premise").fill("A man sleeps.")
    page.locator("#hypothesis").fill("Nobody is awake & about.")
    page.locator("#hypothesis").press("Enter")
    answer = page.locator("#answer-entailment")
    expect(page.locator("#answer-entailment:not([aria-busy]) .picture h2").last).to_have_text(
        "Nobody is awake & about."
    )
    usual = answer.locator(".scores").inner_text()
    answer.locator("input[data-prior=direction]").uncheck()
    expect(answer.locator(".scores")).not_to_have_text(usual, use_inner_text=True)
    scores = answer.locator(".scores").inner_text()
    link = copied_link(page, "entailment")
    assert link == page.url

    page.get_by_role("tab", name="Classification").click()  # whose question is another
    assert "tab=classification" in page.url
    page.locator("#text").fill("This is not asked")
    assert "not+asked" not in copied_link(page, "classification")

    with visit(browser, link) as other:
        expect(other.get_by_role("tab", name="Entailment")).to_have_attribute(
            "aria-selected", "true"
        )
        expect(other.locator("#premise")).to_have_value("A man sleeps.")
        expect(other.locator("#answer-entailment .scores")).to_have_text(
            scores, use_inner_text=True
        )
        expect(other.locator("input[data-prior=direction]")).not_to_be_checked()


def test_a_link_is_followed_in_an_open_page(page: Page) -> None:
    page.goto(urljoin(page.url, "/#tab=classification&model=ms-san-sst2&text=A+dull+film"))
    answer = page.locator("#answer-classification")
    expect(answer.locator(".picture h2")).to_have_text("A dull film")
    page.get_by_text("Model card").first.click()
    expect(page.locator("#panel-classification .model dl")).to_contain_text(
        "labelsnegative, positive"
    )

    page.goto(urljoin(page.url, "/#tab=classification&model=my-own&text=A+film"))
    expect(page.locator("#error")).to_contain_text("the model my-own, which is not loaded")
    expect(answer.locator("> *")).to_have_count(0)


def test_a_link_to_similarities_names_the_sentence_that_is_explained(page: Page) -> None:
    page.get_by_role("tab", name="Similarity").click()
    page.get_by_label("Explain").select_option(index=2)
    explained = page.locator("#answer-similarity:not([aria-busy]) .picture h2")
    expect(explained).to_have_text("The kids are eating at home")
    page.locator("#answer-similarity input[data-prior=direction]").uncheck()
    expect(page).to_have_url(re.compile("prior.direction=false"))
    page.reload()
    expect(explained).to_have_text("The kids are eating at home")
    expect(page.locator("#answer-similarity input[data-prior=direction]")).not_to_be_checked()

    page.goto(re.sub("explained=2", "explained=9", page.url))  # there is none
    expect(explained).to_have_text("Two kids at a ballgame wash their hands")


def test_a_link_keeps_a_large_alpha(page: Page) -> None:
    page.goto(urljoin(page.url, "/#tab=classification&text=A+dull+film&prior.alpha=50"))
    slider = page.locator("#answer-classification input[data-prior=alpha]")
    expect(slider).to_have_value("50")


@pytest.mark.parametrize("alpha", ["5O", "", "Infinity"])
def test_a_link_with_a_damaged_prior_is_refused(page: Page, alpha: str) -> None:
    page.goto(urljoin(page.url, f"/#tab=classification&text=A+dull+film&prior.alpha={alpha}"))
    expect(page.get_by_role("alert")).to_contain_text("priors.alpha")  # it was answered without it


def test_a_link_is_copied_from_a_page_without_https(browser: Browser, shipped: str) -> None:
    with visit(browser, shipped.replace("127.0.0.1", HOST)) as page:
        assert not page.evaluate("isSecureContext")
        actions = page.locator("#answer-classification .actions")
        actions.get_by_role("button", name="Copy link").click()
        expect(actions.get_by_role("status")).to_have_text("Link copied.")
        page.locator("#text").fill("")
        page.locator("#text").press("Control+V")
        expect(page.locator("#text")).to_have_value(page.url)

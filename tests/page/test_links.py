"""The page's address: it holds the question of the tab that is shown."""

from urllib.parse import urljoin

from playwright.sync_api import Browser, Page, expect

from tests.page.visiting import HOST, enter, explained, visit


def copied_link(page: Page, tab: str) -> str:
    """The link that the tab's button copies."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    actions = page.locator(f"#answer-{tab} .actions")
    actions.get_by_role("button", name="Copy link").click()
    expect(actions.get_by_role("status")).to_have_text("Link copied.")
    expect(actions.get_by_role("status")).to_be_in_viewport()
    text: str = page.evaluate("navigator.clipboard.readText()")
    return text


def test_a_link_gives_the_same_answer(why: Page, browser: Browser) -> None:
    why.locator("#model-why").select_option("ms-san-nli")
    why.locator("#why-text").fill("A man sleeps.")
    enter(why, "#why-second", "Nobody is awake & about.")
    answer = explained(why)
    expect(answer.locator(".tree .word").last).to_have_text(".")
    usual = answer.locator(".scores").inner_text()
    answer.locator("input[data-prior=direction]").uncheck()
    expect(answer.locator(".scores")).not_to_have_text(usual, use_inner_text=True)
    scores = answer.locator(".scores").inner_text()
    link = copied_link(why, "why")
    assert link == why.url

    why.get_by_role("tab", name="Compare").click()  # whose question is another
    expect(why.locator("#answer-compare .actions")).to_be_visible()
    assert "tab=compare" in why.url
    why.locator("#first").fill("This is not asked")
    assert "not+asked" not in copied_link(why, "compare")

    with visit(browser, link) as other:
        expect(other.get_by_role("tab", selected=True)).to_have_text("Why")
        expect(other.locator("#why-text")).to_have_value("A man sleeps.")
        expect(other.locator("#answer-why .scores")).to_have_text(scores, use_inner_text=True)
        expect(other.locator("input[data-prior=direction]")).not_to_be_checked()


def test_a_link_holds_the_texts_that_are_searched(page: Page, browser: Browser) -> None:
    page.get_by_role("tab", name="Search").click()
    page.get_by_role("button", name="Paste your own texts").first.click()
    page.locator("#search-lines").fill("One dog\nTwo cats & a mouse")
    page.get_by_role("button", name="Use these texts").first.click()
    page.locator("#query").fill("kittens")
    expect(page.locator(".results .text").first).to_have_text("Two cats & a mouse")
    page.wait_for_url("**query=kittens**")
    link = copied_link(page, "search")
    with visit(browser, link) as other:
        expect(other.locator("#query")).to_have_value("kittens")
        expect(other.locator(".results .text")).to_have_text(["Two cats & a mouse", "One dog"])


def test_a_link_keeps_a_large_alpha_and_a_damaged_one_is_refused(page: Page) -> None:
    for alpha in ("5O", "50", "Infinity"):
        page.goto(urljoin(page.url, f"/#tab=why&why-text=A+dull+film&prior.alpha={alpha}"))
        if alpha == "50":
            expect(page.locator("#answer-why input[data-prior=alpha]")).to_have_value(alpha)
        else:
            expect(page.get_by_role("alert")).to_contain_text("priors.alpha")


def test_a_link_is_copied_from_a_page_without_https(browser: Browser, shipped: str) -> None:
    with visit(browser, shipped.replace("127.0.0.1", HOST)) as page:
        assert not page.evaluate("isSecureContext")
        actions = page.locator("#answer-search .actions")
        actions.get_by_role("button", name="Copy link").click()
        expect(actions.get_by_role("status")).to_have_text("Link copied.")
        link = page.url
        page.locator("#query").fill("")
        page.locator("#query").press("Control+V")
        expect(page.locator("#query")).to_have_value(link)

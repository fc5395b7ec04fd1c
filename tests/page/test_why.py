"""The last tab, and the file of `heedful explain`: what an answer rests on, and what the model attends to."""

import json
import re
from pathlib import Path
from urllib.parse import urljoin
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from heedful.cli.explain import command
from tests.page.visiting import (
    accessible,
    answer_again,
    below_a_path,
    enter,
    explained,
    follow,
    save,
    width_of,
)

KIDS = "Two kids at a ballgame wash their hands"
ASLEEP = "The children are asleep at home"
PAIR = f"tab=why&model=ms-san-nli&why-text={KIDS}&why-second={ASLEEP}"


def test_the_file_opens_from_the_disk_and_asks_for_nothing(
    browser: Browser, tmp_path: Path
) -> None:
    file = tmp_path / "pair.html"
    command(KIDS, ASLEEP, "ms-san-nli", to=file, models=Path("bundles"))
    messages: list[str] = []
    urls: list[str] = []
    page = browser.new_page(viewport={"width": 360, "height": 740})
    page.on("console", lambda message: messages.append(message.text))
    page.on("request", lambda request: urls.append(request.url))
    page.goto(file.as_uri())
    assert page.title() == "What ms-san-nli attends to"
    assert page.locator("figure[data-map]").count() == 13  # six heads a side, and across
    assert page.locator("path.arc").count() == 8 + 6  # with full stops
    assert width_of(page) <= 360
    assert (messages, urls) == ([], [file.as_uri()])
    accessible(page)
    page.close()


@pytest.fixture
def pair(page: Page) -> Page:
    """The last tab, with two sentences."""
    follow(page, PAIR)
    explained(page)
    return page


def values(page: Page, figure: str) -> list[float]:
    """The numbers in the cells of a heat map, row by row."""
    cells = page.locator(f"figure[data-map='{figure}']").first.locator(".cell")
    return [float(value) for value in cells.evaluate_all("all => all.map(c => c.dataset.value)")]


def colours(picture: Locator) -> list[str]:
    """The colours of the tokens; the tree's words have the same."""
    shades: list[str] = picture.locator(".tokens button").evaluate_all(
        "all => all.map(one => getComputedStyle(one).backgroundColor)"
    )
    words = picture.locator(".tree rect.shade").evaluate_all(
        "all => all.map(one => getComputedStyle(one).fill)"
    )
    assert words == shades
    return shades


def test_evidence_is_the_services(pair: Page) -> None:
    with pair.expect_response("**/explain") as answered:
        pair.get_by_role("button", name="Explain").click()
    result = answer_again(pair, answered.value)
    answer = explained(pair)
    for side, evidence in enumerate(result["evidence"]["sentences"]):
        picture = answer.locator(".picture").nth(side)
        shown = picture.locator(".tokens small").all_inner_texts()
        numbers = [float(number.replace("\u2212", "-")) for number in shown]
        assert numbers == pytest.approx(evidence["margins"], abs=0.051)
        by_evidence = colours(picture)
        picture.locator("select").select_option(label="attentive pooling")
        expect(picture.locator(".tokens small")).to_have_count(0)
        assert colours(picture) != by_evidence
    answer.get_by_role("button", name="?: Attentive pooling").first.focus()
    pair.keyboard.press("Enter")
    term = pair.locator(".term:popover-open")
    expect(term).to_contain_text("where the model looks")
    pair.keyboard.press("Escape")
    expect(term).to_have_count(0)


def test_another_model_leaves_no_old_answer(why: Page) -> None:
    with why.expect_response("**/explain") as answered:
        why.locator("#model-why").select_option("ms-san-trec")
    result = answer_again(why, answered.value)
    assert result["model"] == "ms-san-trec"
    expect(explained(why).locator("h2").first).to_have_text(result["prediction"]["label"])
    with why.expect_response("**/explain") as answered:  # a model of pairs gets a pair
        why.locator("#model-why").select_option("ms-san-relatedness")
    related = answer_again(why, answered.value)["relatedness"]
    expect(explained(why).locator("h2").first).to_contain_text(f"{related:.2f}")


def test_what_if_shows_both_answers(why: Page) -> None:
    answer = why.locator("#answer-why")
    answer.get_by_text("What if a word were another").click()
    answer.locator(".whatif select").select_option("ms-san-sst2")
    enter(answer, ".whatif textarea", "A dull, tedious mess")
    before, then = answer.locator("[data-side=before]"), answer.locator("[data-side=then]")
    expect(then.locator("h2")).to_have_text("negative")
    expect(then.locator(".key")).to_have_text("ms-san-sst2, then")
    expect(before.locator(".tokens li")).to_have_count(13)
    expect(then.locator(".tokens li")).to_have_count(5)
    accessible(why)
    enter(answer, ".whatif textarea", "word " * 130)
    expect(answer.locator(".versus")).to_have_text(re.compile("up to 128$"))


def test_an_answer_is_saved_whatever_its_texts_are(pair: Page, tmp_path: Path) -> None:
    """A drawing holds a noncharacter, which XML forbids, and is 90,000 pixels wide, more than a canvas allows."""
    enter(pair, "#why-text", "\ufffe " + f"{'x' * 400} " * 24)
    answer = pair.locator("#answer-why:not([aria-busy])")
    expect(answer.locator(".picture").first.locator(".tokens li")).to_have_count(26)
    for button, name in (
        ("Save JSON", "answer.json"),
        ("Save SVG", "tree.svg"),
        ("Save PNG", "tree.png"),
    ):
        save(pair, answer, button, tmp_path / name)
    assert json.loads((tmp_path / "answer.json").read_text())["model"] == "ms-san-nli"
    drawn = (tmp_path / "tree.svg").read_text()
    assert "var(--" not in drawn
    words = [one.text for one in ElementTree.fromstring(drawn).iter() if one.get("class") == "word"]
    assert words[26:] == [*ASLEEP.split(), "."]  # a pair is read with full stops
    header = (tmp_path / "tree.png").read_bytes()[:20]
    assert header.startswith(b"\x89PNG")
    assert int.from_bytes(header[16:], "big") == 16_384  # its width


def test_a_long_text_stays_readable_on_a_phone(why: Page) -> None:
    why.set_viewport_size({"width": 375, "height": 740})
    long = "The film that we saw on the first day of the long week was good " * 4 + "x" * 400
    enter(why, "#why-text", long)
    expect(why.locator("#answer-why:not([aria-busy]) .tokens li").nth(50)).to_be_visible()
    expect(why.locator("#answer-why .tree")).to_be_hidden()  # far wider than the window
    why.locator("#answer-why details.why > summary").click()
    box = why.locator("#answer-why figure .word").first.bounding_box()
    assert box is not None
    assert box["height"] >= 9
    assert width_of(why) <= 375
    why.locator("#answer-why details.grammar > summary").click()
    tree = why.locator("#answer-why .tree")
    assert tree.evaluate("one => one.scrollWidth > one.clientWidth")
    enter(why, "#why-text", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢" * 3)  # letters of two code units stay whole
    expect(why.locator("#answer-why figure .word").first).to_have_text("𝔘𝔫𝔦𝔠𝔬𝔡𝔢𝔘𝔫𝔦𝔠𝔬𝔡…")


def test_heads_and_their_priors(pair: Page) -> None:
    page = pair
    answer = explained(page)
    label = answer.locator("h2").first.inner_text()
    expect(page.locator("#answered")).to_have_text(f"Answer: {label}")  # for screen readers
    assert answer.locator(".picture figure[data-map]").count() == 13  # six heads a side, and across
    head = "forward, word distance"
    count = len([*KIDS.split(), "."])
    before = values(page, head)
    for q in range(count):
        row = before[count * q : count * (q + 1)]
        assert sum(row) == pytest.approx(1, abs=1e-5)
        assert all(weight == 0 for weight in row[q + 1 :])  # forward: nothing after the word
    for details in answer.locator("details.why > summary").all():
        details.click()
    figure = page.locator(f"figure[data-map='{head}']").first
    figure.get_by_text("Table", exact=True).press("Enter")
    cells = figure.get_by_role("cell")  # the map's own are read by pointing alone
    expect(cells).to_have_text(["", *(f"{100 * value:.1f} %" for value in before)])
    accessible(page)

    answer.locator(".picture select").last.select_option(label="attentive pooling")
    answer.get_by_text("What if a word were another").click()
    answer.locator(".whatif textarea").last.fill("Nobody is awake")
    with page.expect_response("**/explain"):
        answer.locator("input[data-prior=alpha]").fill("4")
    page.wait_for_function(
        "([name, old]) => document.querySelector(`#answer-why figure[data-map='${name}'] "
        ".cell:nth-child(64)`).dataset.value != old",
        arg=[head, str(before[63])],
    )
    assert values(page, head)[70] > before[70]  # the last word: the nearest weighs more
    # What one looks at and has typed stays.
    expect(answer.locator(".picture .tokens small")).to_have_count(count)  # the first's evidence
    expect(answer.locator(".whatif textarea").last).to_have_value("Nobody is awake")
    with page.expect_request("**/explain") as request:  # with the same priors
        answer.get_by_role("button", name="Show both").click()
    assert (request.value.post_data_json or {})["priors"]["alpha"] == 4


def test_the_keyboard_alone(why: Page) -> None:
    """A composition's Enter asks nothing."""
    why.get_by_role("tab", name="Why").focus()
    why.keyboard.press("ArrowRight")  # from the last to the first
    expect(why.get_by_role("tab", name="Search")).to_have_attribute("aria-selected", "true")
    why.keyboard.press("ArrowLeft")
    asked: list[str] = []
    why.on("request", lambda request: asked.append(request.url))
    why.locator("#why-text").dispatch_event("keydown", {"key": "Enter", "isComposing": True})
    why.locator("#why-text").focus()
    with why.expect_response("**/explain"):
        why.keyboard.press("Enter")
    assert [url.rpartition("/")[2] for url in asked] == ["explain"]
    explained(why)
    token = why.locator("#answer-why .tokens button").nth(1)
    token.focus()
    expect(token).to_have_class("on")
    assert why.locator("#answer-why svg .word.lit").count() > 2


def test_the_documentation_is_drawn_without_the_internet(browser: Browser, shipped: str) -> None:
    """Its relative addresses work with and without a proxy that serves it below a path."""
    context = browser.new_context()
    page = context.new_page()
    root = f"{shipped}/proxied/"

    def forward(route: Route) -> None:
        inside = route.request.url.startswith((root, "data:"))
        route.continue_() if inside else route.abort()

    context.route("**", forward)
    context.route("**/proxied/**", below_a_path)
    refused: list[str] = []
    page.on(
        "console", lambda message: refused.append(message.text) if message.type == "error" else None
    )
    page.goto(f"{root}docs")
    expect(page.locator("[id$=embed_embed_post]").first).to_be_visible()
    tried = page.locator("[id$=health_health_get]").first
    tried.click()
    tried.get_by_role("button", name="Try it out").click()
    with page.expect_response(f"{root}health") as answered:
        tried.get_by_role("button", name="Execute").click()
    assert answered.value.ok
    assert refused == []  # by the page's policy too
    context.close()


def test_the_theme_is_remembered(page: Page) -> None:
    page.select_option("#theme", "dark")
    page.reload()
    expect(page.locator("#theme")).to_have_value("dark")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.select_option("#theme", "auto")


def test_the_request_can_be_copied(why: Page) -> None:
    """The request is right also below a proxy's path. It is the module's last test: the page stays there."""
    why.route("**/proxied/**", below_a_path)
    why.goto(urljoin(why.url, "/proxied/#tab=why"))
    explained(why)
    shown = why.locator("#answer-why details.requests")
    shown.locator("summary").click()
    url = urljoin(why.url, "explain")
    assert shown.locator("pre").nth(0).inner_text().startswith(f"curl {url} ")
    assert f'httpx.post(\n    "{url}"' in shown.locator("pre").nth(1).inner_text()
    shown.get_by_role("button", name="Copy Python").click()
    expect(shown.get_by_role("status").nth(1)).to_have_text("Python copied.")
    expect(shown.get_by_role("status").nth(1)).to_be_in_viewport()

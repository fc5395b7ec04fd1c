"""The page at /, in a real Chromium against the running service with the shipped bundles."""

import json
import os
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urljoin
from xml.etree import ElementTree

import numpy as np
import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from tests.builders import build_bundle, build_models
from tests.page.accessible import accessible
from tests.page.visiting import answer_again, asks, below_a_path, submit, visit
from tests.process import Process

KIDS = "Two kids at a ballgame wash their hands"
SHOTS = os.environ.get("HEEDFUL_SCREENSHOTS")
"""A folder to keep screenshots in; those of docs/ are made so."""


@pytest.fixture(scope="module")
def relating(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a service that cuts long texts, with a tiny relatedness model, a classifier that abstains unless
    it is certain, and one whose texts may have several labels."""
    folder = tmp_path_factory.mktemp("relating")
    models = folder / "bundles"
    models.mkdir()
    parser = build_models(models)
    build_bundle(models, parser, name="tiny-r", kind="relatedness", explain=True)
    build_bundle(models, parser, explain=True, abstain=1.0)
    tags = ("praise", "price", "taste")
    build_bundle(models, parser, name="tiny-tags", labels=tags, explain=True, multi_label=True)
    flags = {"port": "0", "models": str(models), "threads": "1", "truncate": "true"}
    process = Process(folder / "log", flags, {})
    try:
        yield process.ready()
    finally:
        process.close()


def values(page: Page, figure: str) -> list[float]:
    """What the cells of a heat map say, row by row."""
    cells = page.locator(f"figure[data-map='{figure}']:visible").first.locator(".cell")
    return [float(value) for value in cells.evaluate_all("all => all.map(c => c.dataset.value)")]


def colours(picture: Locator) -> list[str]:
    """Of the tokens; the words of the tree have the same."""
    found: list[str] = picture.locator(".tokens button").evaluate_all(
        "all => all.map(one => getComputedStyle(one).backgroundColor)"
    )
    words = picture.locator(".tree rect.shade").evaluate_all(
        "all => all.map(one => getComputedStyle(one).fill)"
    )
    assert words == found
    return found


def contrasts(page: Page) -> list[float]:
    """Of each number of the similarity map with its cell, as WCAG computes it: 1 to 21."""
    found: list[list[list[float]]] = page.evaluate(
        """() => {
            const colour = (text) => text.match(/[\\d.]+/g).map(Number);
            const filled = (cell) => {
                const [red, green, blue, opacity = 1] = colour(getComputedStyle(cell).fill);
                return [red, green, blue, opacity];
            };
            const map = document.querySelector("#answer-similarity figure");
            const ground = colour(getComputedStyle(map).backgroundColor);
            const numbers = [...map.querySelectorAll(".number")];
            return [...map.querySelectorAll(".cell")].map((cell, i) => [
                colour(getComputedStyle(numbers[i]).fill), filled(cell), ground,
            ]);
        }"""
    )

    def luminance(colour: Any) -> float:
        share = np.array(colour) / 255
        linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    contrasts = []
    for ink, (*cell, opacity), ground in found:
        below = np.array(cell) * opacity + np.array(ground) * (1 - opacity)
        dark, light = sorted([luminance(ink), luminance(below)])
        contrasts.append((light + 0.05) / (dark + 0.05))
    return contrasts


def keep(page: Page, name: str) -> None:
    if SHOTS:
        page.screenshot(path=str(Path(SHOTS) / f"{name}.png"), full_page=True)


def test_the_first_paint_is_an_answered_example(page: Page) -> None:
    """Without a click: the answer, the evidence and the tree, in the window, and nothing moves after it."""
    shown = page.locator("#answer-classification")
    for part in ("h2", ".scores", ".tokens", ".tree svg"):
        box = shown.locator(part).first.bounding_box()
        assert box is not None
        assert box["y"] < 900, part
    evidence = shown.locator(".tokens small").all_inner_texts()
    assert len(evidence) == 13
    assert {number[0] for number in evidence} == {"+", "\u2212"}  # for and against, without colour
    expect(shown.locator("details.why")).not_to_have_attribute("open", "")
    expect(shown.locator(".timing")).to_contain_text("ms")
    keep(page, "first-paint")
    accessible(page)


def test_evidence_is_the_answers(page: Page) -> None:
    page.get_by_role("tab", name="Entailment").click()
    with page.expect_response("**/explain") as answered:
        page.get_by_role("button", name="Judge").click()
    found = answer_again(page, answered.value)
    expect(page.locator("#answer-entailment:not([aria-busy]) .picture .tokens")).to_have_count(2)
    for side, evidence in enumerate(found["evidence"]["sentences"]):
        picture = page.locator("#answer-entailment .picture").nth(side)
        shown = picture.locator(".tokens small").all_inner_texts()
        numbers = [float(number.replace("\u2212", "-")) for number in shown]
        assert numbers == pytest.approx([100 * one for one in evidence["weights"]], abs=0.051)
        by_evidence = colours(picture)
        picture.locator("select").select_option(label="attentive pooling")
        expect(picture.locator(".tokens small")).to_have_count(0)
        assert colours(picture) != by_evidence


def test_evidence_that_rounds_to_nothing_is_pale(page: Page) -> None:
    """The largest change has full colour; one that rounds to nothing has neither a sign nor a colour."""

    def small(route: Route) -> None:
        answered = route.fetch()
        found = answered.json()
        for evidence in found["evidence"]["sentences"]:
            evidence["weights"] = [1e-4 * one for one in evidence["weights"]]
        route.fulfill(response=answered, json=found)

    tokens = page.locator("#answer-classification .tokens button")
    colour = "all => all.map(b => Number(getComputedStyle(b).backgroundColor.match(/[\\d.]+/g)[3]))"
    assert max(tokens.evaluate_all(colour)) > 0.5
    page.route("**/explain", small)
    page.locator("#text").press("Enter")
    expect(tokens.locator("small")).to_have_text(["0.0"] * tokens.count())
    expect(tokens.first).to_have_accessible_name(re.compile("neither for nor against"))
    assert max(tokens.evaluate_all(colour)) == 0


def test_another_model_leaves_no_old_answer(page: Page) -> None:
    with page.expect_response("**/explain") as answered:
        page.locator("#model-classification").select_option("ms-san-trec")
    found = answer_again(page, answered.value)
    assert found["model"] == "ms-san-trec"
    label = found["prediction"]["label"]
    expect(page.locator("#answer-classification:not([aria-busy]) h2").first).to_have_text(label)


def test_what_if_shows_both_answers(page: Page) -> None:
    answer = page.locator("#answer-classification")
    answer.get_by_text("What if a word were another").click()
    answer.locator(".whatif select").select_option("ms-san-sst2")
    answer.locator(".whatif textarea").fill("A dull, tedious mess")
    answer.locator(".whatif textarea").press("Enter")
    before, then = answer.locator("[data-side=before]"), answer.locator("[data-side=then]")
    expect(then.locator("h2")).to_have_text("negative")
    expect(then.locator(".key")).to_have_text("ms-san-sst2, then")
    expect(before.locator(".tokens li")).to_have_count(13)
    expect(then.locator(".tokens li")).to_have_count(5)
    accessible(page)

    # The first of two questions is not answered.
    page.route(
        "**/explain",
        lambda route: None if b"slow" in route.request.post_data_buffer else route.continue_(),
    )
    answer.locator(".whatif textarea").fill("A slow one")
    answer.locator(".whatif textarea").press("Enter")
    answer.locator(".whatif textarea").fill("A quick one")
    with page.expect_event("requestfailed"):
        answer.locator(".whatif textarea").press("Enter")
    expect(then.locator(".tokens li").nth(1)).to_contain_text("quick")

    answer.locator(".whatif textarea").fill("word " * 130)
    answer.locator(".whatif textarea").press("Enter")
    expect(answer.locator(".versus")).to_have_text(re.compile("up to 128; send a shorter text$"))


def test_an_answer_is_saved(page: Page, tmp_path: Path) -> None:
    for button, name, begin in (
        ("Save JSON", "answer.json", b"{"),
        ("Save SVG", "tree.svg", b"<svg"),
        ("Save PNG", "tree.png", b"\x89PNG"),
    ):
        with page.expect_download() as download:
            page.locator("#answer-classification").get_by_role("button", name=button).click()
        assert download.value.suggested_filename == name
        download.value.save_as(tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(begin)
    assert json.loads((tmp_path / "answer.json").read_text())["model"].startswith("ms-san-")
    assert "var(--" not in (tmp_path / "tree.svg").read_text()

    page.get_by_role("tab", name="Entailment").click()
    with page.expect_download() as download:
        page.locator("#answer-entailment").get_by_role("button", name="Save SVG").click()
    download.value.save_as(tmp_path / "pair.svg")
    words = re.findall(r'class="word"[^>]*>([^<]+)<', (tmp_path / "pair.svg").read_text())
    assert " ".join(words) == f"{KIDS} The children are asleep at home"


def test_drawings_of_any_text_are_saved(page: Page, tmp_path: Path) -> None:
    """One holds a terminal's escape, which XML cannot, and is 90,000 pixels wide, more than a canvas can be."""
    answer = page.locator("#answer-classification:not([aria-busy])")
    page.locator("#text").fill("\x1b[31m " + f"{'x' * 400} " * 24)
    page.locator("#text").press("Enter")
    expect(answer.locator(".tokens li")).to_have_count(26)
    for button, name in (("Save SVG", "tree.svg"), ("Save PNG", "tree.png")):
        with page.expect_download() as download:
            answer.get_by_role("button", name=button).click()
        download.value.save_as(tmp_path / name)
    ElementTree.parse(tmp_path / "tree.svg")
    header = (tmp_path / "tree.png").read_bytes()[:20]
    assert int.from_bytes(header[16:], "big") == 16_384  # its width


def test_a_long_text_stays_readable(page: Page) -> None:
    page.set_viewport_size({"width": 375, "height": 740})
    page.locator("#text").fill(
        "The film that we saw on the first day of the long week was good " * 4 + "x" * 400
    )
    page.locator("#text").press("Enter")
    expect(
        page.locator("#answer-classification:not([aria-busy]) .tokens li").nth(50)
    ).to_be_visible()
    page.locator("#answer-classification details.why > summary").click()
    label = page.locator("#answer-classification figure .word").first
    box = label.bounding_box()
    assert box is not None
    assert box["height"] >= 9
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    assert page.locator("#text").evaluate("one => one.scrollWidth <= one.clientWidth")


def test_letters_of_two_code_units_stay_whole(page: Page) -> None:
    page.locator("#text").fill("𝔘𝔫𝔦𝔠𝔬𝔡𝔢" * 3)
    page.locator("#text").press("Enter")
    expect(page.locator("#answer-classification figure .word").first).to_have_text("𝔘𝔫𝔦𝔠𝔬𝔡𝔢𝔘𝔫𝔦𝔠𝔬𝔡…")


def test_the_theme_is_remembered(page: Page) -> None:
    page.select_option("#theme", "dark")
    page.reload()
    expect(page.locator("#theme")).to_have_value("dark")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.evaluate("localStorage.setItem('theme', 'sepia')")  # another program at this address
    page.reload()
    expect(page.locator("#theme")).to_have_value("auto")


def test_similarity(page: Page) -> None:
    submit(page, "Similarity", "Compare")
    map_ = page.locator("figure[data-map='Cosine of every two sentences']")
    expect(map_.locator(".number")).to_have_count(25)
    expect(map_.locator(".legend")).to_contain_text("1.000")
    map_.locator(".cell").nth(1).click()  # as a finger does
    expect(map_.locator(".read")).to_contain_text("1 → 2")
    served = page.request.get(urljoin(page.url, "models")).json()["models"]
    related = any(card["kind"] == "relatedness" for card in served)
    expect(page.get_by_role("tab", name="Relatedness")).to_have_count(int(related))
    cosines = values(page, "Cosine of every two sentences")
    assert len(cosines) == 25
    assert cosines[0] == pytest.approx(1, abs=1e-5)
    assert cosines[1] == pytest.approx(cosines[5], abs=1e-6)
    said = map_.locator("svg").get_attribute("aria-label") or ""
    most = max(range(1, 5), key=lambda column: cosines[column])  # of the others
    assert said.startswith(
        f"Cosine of every two sentences: 1 most like {most + 1}, {cosines[most]:.3f}; 2 most like "
    )
    map_.get_by_text("Table", exact=True).press("Enter")
    cells = map_.get_by_role("cell")  # the map's own are read by pointing alone
    expect(cells).to_have_text(["", *(f"{cosine:.3f}" for cosine in cosines)])
    expect(map_.get_by_role("columnheader")).to_have_text(list("12345"))
    expect(map_.get_by_role("rowheader")).to_have_text(list("12345"))
    token = page.locator("#answer-similarity .tokens button").first
    expect(token).to_have_accessible_name(re.compile(r"^Two \+.*, for the vector's direction$"))
    for scheme in ("light", "dark"):
        page.select_option("#theme", scheme)
        assert min(contrasts(page)) >= 4.5
    keep(page, "similarity")
    accessible(page)


def test_entailment_and_its_priors(page: Page) -> None:
    page.get_by_role("tab", name="Entailment").click()
    label = page.locator("#answer-entailment h2").first.inner_text()
    expect(page.locator("#answered")).to_have_text(f"Answer: {label}")  # for screen readers
    # The default, not the first by name.
    expect(page.locator("#model-entailment")).to_have_value("ms-san-nli")
    submit(page, "Entailment", "Judge")
    answer = page.locator("#answer-entailment")
    assert answer.locator(".scores > span").count() == 6
    widths = answer.locator(".bar > i").evaluate_all(
        "all => all.map(bar => bar.offsetWidth / bar.parentElement.clientWidth)"
    )
    shares = answer.locator(".scores > span:nth-child(3n)").all_inner_texts()
    for width, share in zip(widths, shares, strict=True):
        assert width == pytest.approx(float(share.removesuffix(" %")) / 100, abs=0.01)
    assert answer.locator(".picture figure[data-map]").count() == 13  # six heads a side, and across

    head = "forward, word distance"
    words = 8  # "Two kids at a ballgame wash their hands"
    before = values(page, head)
    rows = [before[start : start + words] for start in range(0, words * words, words)]
    for q, row in enumerate(rows):
        assert sum(row) == pytest.approx(1, abs=1e-5)
        assert all(weight == 0 for weight in row[q + 1 :])  # forward: nothing after the word

    answer.locator(".picture select").last.select_option(label="attentive pooling")
    answer.get_by_text("What if a word were another").click()
    answer.locator(".whatif textarea").last.fill("Nobody is awake")
    slider = answer.locator("input[data-prior=alpha]")
    with page.expect_response("**/explain"):
        slider.fill("4")
    expect(page.locator("#status")).to_have_text("")
    page.wait_for_function(
        "([name, old]) => document.querySelector(`#answer-entailment figure[data-map='${name}'] "
        ".cell:nth-child(57)`).dataset.value != old",
        arg=[head, str(before[56])],
    )
    nearer = values(page, head)
    assert nearer[63] > before[63]  # the last word, from itself: the nearest weighs more
    with page.expect_response("**/explain") as answered:
        answer.locator("input[data-prior=direction]").uncheck()
    assert answer_again(page, answered.value)["priors"]["direction"] is False
    # What one looks at and has typed stays.
    expect(answer.locator(".picture .tokens small")).to_have_count(words)  # the premise's evidence
    expect(answer.locator(".whatif textarea").last).to_have_value("Nobody is awake")
    answer.locator(".whatif textarea").last.fill(page.locator("#hypothesis").input_value())
    with page.expect_request("**/explain") as asked:  # with the same priors
        answer.get_by_role("button", name="Show both").click()
    assert (asked.value.post_data_json or {})["priors"]["alpha"] == 4
    scores = answer.locator("> * > .scores").inner_text()
    expect(answer.locator("[data-side=then] .scores")).to_have_text(scores, use_inner_text=True)
    keep(page, "entailment")
    accessible(page)


def test_a_token_lights_up_what_is_like_it_in_the_other_sentence(page: Page) -> None:
    page.get_by_role("tab", name="Entailment").click()
    with page.expect_response("**/explain") as answered:
        submit(page, "Entailment", "Judge")
    cosines = np.array(answer_again(page, answered.value)["similarity"])
    pictures = page.locator("#answer-entailment .picture")
    tokens = [pictures.nth(side).locator(".tokens button") for side in (0, 1)]
    near = [pictures.nth(side).locator(".tokens .near") for side in (0, 1)]
    map_ = page.locator("figure[data-map='Similarity of their tokens']")
    for side, lines in enumerate((cosines, cosines.T)):
        for i, line in enumerate(lines):
            tokens[side].nth(i).hover()
            expected = [int(k) for k in np.flatnonzero(line >= line.max() - 0.02)]
            lit = near[1 - side].evaluate_all("all => all.map(b => Number(b.dataset.token))")
            assert lit == expected
            expect(near[side]).to_have_count(0)
            expect(map_.locator(".cell.lit")).to_have_count(len(line))
    keep(page, "pair")
    map_.locator(".cell").nth(cosines.shape[1] * 5 + 2).hover()
    expect(near[0]).to_have_text([tokens[0].nth(5).inner_text()])
    expect(near[1]).to_have_text([tokens[1].nth(2).inner_text()])
    page.mouse.move(0, 0)
    expect(page.locator("#answer-entailment .near")).to_have_count(0)
    tokens[1].nth(3).focus()  # the keyboard does it as well
    expect(near[0]).not_to_have_count(0)
    page.locator("#premise").focus()
    expect(page.locator("#answer-entailment .near")).to_have_count(0)
    accessible(page)


def test_relatedness_has_a_tab_where_a_model_does_it(relating: str, browser: Browser) -> None:
    with visit(browser, relating) as other:
        expect(other.get_by_role("tab")).to_have_count(4)
        with other.expect_response("**/explain") as answered:
            submit(other, "Relatedness", "Relate")
        found = answer_again(other, answered.value)["relatedness"]
        answer = other.locator("#answer-relatedness")
        assert float(answer.locator("meter").get_attribute("value") or 0) == pytest.approx(found)
        expect(answer.locator("h2").first).to_have_text(f"Relatedness: {found:.2f} of 1 to 5")
        with other.expect_response("**/explain") as answered:
            answer.locator("input[data-prior=dependency]").uncheck()
        assert answer_again(other, answered.value)["relatedness"] != found
        other.get_by_role("tab", name="Relatedness").focus()
        other.keyboard.press("ArrowRight")
        selected = other.get_by_role("tab", name="Similarity")
        expect(selected).to_have_attribute("aria-selected", "true")
        other.get_by_role("tab", name="Relatedness").click()
        accessible(other)


def test_a_model_that_abstains_gives_no_label(relating: str, browser: Browser) -> None:
    with visit(browser, relating) as other:
        submit(other, "Classification", "Classify")
        answer = other.locator("#answer-classification")
        expect(answer.locator("h2").first).to_have_text("No label is probable enough")


def test_a_text_may_have_several_labels_or_none(relating: str, browser: Browser) -> None:
    with visit(browser, relating) as other:
        other.locator("#model-classification").select_option("tiny-tags")
        answer = other.locator("#answer-classification:not([aria-busy])")
        numbers = set()
        for text in ("good", "bad", "dog", "two dogs wash", "their hands", "man is not bad"):
            other.locator("#text").fill(text)
            with other.expect_response(partial(asks, text)) as answered:
                other.locator("#text").press("Enter")
            expect(answer.locator(".picture h2")).to_have_text(text)
            scores = answer_again(other, answered.value)["prediction"]["scores"]
            likely = [label for label in scores if scores[label] >= 0.5]
            likely.sort(key=lambda label: -scores[label])
            said = ", ".join(likely) or "No label is probable enough"
            expect(answer.locator("h2").first).to_have_text(said)
            expect(answer.locator(".scores > span.best:nth-child(3n + 1)")).to_have_text(likely)
            numbers.add(len(likely))
        assert numbers - {1}


def test_what_the_service_cuts_is_said(relating: str, browser: Browser) -> None:
    with visit(browser, relating) as other:
        other.locator("#text").fill("good " * 20)
        with other.expect_response("**/classify") as answered:
            other.locator("#text").press("Enter")
        assert answered.value.headers["x-truncated"] == "1"
        answer = other.locator("#answer-classification")
        expect(answer.locator(".refused")).to_have_text(
            "longer than the model reads and cut at the end: 1 of the texts"
        )
        expect(answer.locator(".picture")).to_have_count(0)
        answer = other.locator("#answer-similarity")
        other.get_by_role("tab", name="Similarity").click()
        other.locator("#sentences").fill("good " * 20 + "\nbad")
        other.locator("#sentences").press("Control+Enter")
        expect(answer.locator(".refused")).to_contain_text("1 of the texts")


def test_classification_with_the_keyboard_alone(page: Page) -> None:
    page.get_by_role("tab", name="Similarity").focus()
    page.keyboard.press("ArrowRight")  # from the last to the first
    expect(page.get_by_role("tab", name="Classification")).to_have_attribute(
        "aria-selected", "true"
    )
    page.locator("#text").focus()
    with page.expect_response("**/explain"):  # before it, the answer of the first paint is there
        page.keyboard.press("Enter")
    answer = page.locator("#answer-classification:not([aria-busy])")
    expect(answer.locator(".picture").first).to_be_visible()
    page.locator("#answer-classification details.why > summary").press("Enter")
    token = page.locator("#answer-classification .tokens button").nth(1)
    token.focus()
    expect(token).to_have_class("on")
    assert page.locator("#answer-classification svg .word.lit").count() > 2
    keep(page, "classification")
    accessible(page)


@pytest.mark.parametrize("width", [1200, 375])
def test_long_names_fit(page: Page, width: int) -> None:
    """Of labels and of a model."""
    labels = [f"{'a complaint about what was delivered ' * 4}{name * 60}" for name in "abc"]

    def lengthen(route: Route) -> None:
        answered = route.fetch()
        found = answered.json()
        scores = found["prediction"]["scores"].values()
        found["prediction"] = {"label": labels[0], "scores": dict(zip(labels, scores, strict=True))}
        found["evidence"]["of"] = labels[0]
        route.fulfill(response=answered, json=found)

    page.locator("#model-classification option").first.evaluate(
        "one => { one.textContent = 'n'.repeat(120); }"
    )
    page.route("**/explain", lengthen)
    page.set_viewport_size({"width": width, "height": 740})
    page.locator("#text").press("Enter")
    expect(page.locator("#answer-classification .scores")).to_contain_text(labels[2])
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    bar = page.locator("#answer-classification .bar").first.bounding_box()
    assert bar is not None
    assert bar["width"] >= 150


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone(page: Page, scheme: str) -> None:
    page.set_viewport_size({"width": 375, "height": 740})
    page.select_option("#theme", scheme)
    submit(page, "Classification", "Classify")
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    keep(page, f"phone-{scheme}")
    accessible(page)


def test_in_forced_colours(browser: Browser, shipped: str) -> None:
    with visit(browser, shipped, forced_colors="active") as page:
        colour = "(one, property) => getComputedStyle(one)[property]"
        bar = page.locator("#answer-classification .bar").first
        full = bar.locator("i").evaluate(colour, "backgroundColor")
        assert full != bar.evaluate(colour, "backgroundColor")
        chosen, other = (page.get_by_role("tab", selected=one).first for one in (True, False))
        line = chosen.evaluate(colour, "borderBottomColor")
        assert line != other.evaluate(colour, "borderBottomColor")
        page.locator("#answer-classification .picture select").select_option("attentive pooling")
        assert len(set(colours(page.locator("#answer-classification .picture")))) > 2


def test_the_request_can_be_copied(page: Page) -> None:
    page.route("**/proxied/**", below_a_path)
    page.goto(urljoin(page.url, "/proxied/"))
    shown = page.locator("#answer-classification details.requests")
    shown.locator("summary").click()
    url = urljoin(page.url, "explain")
    assert shown.locator("pre").nth(0).inner_text().startswith(f"curl {url} ")
    assert f'httpx.post(\n    "{url}"' in shown.locator("pre").nth(1).inner_text()
    shown.get_by_role("button", name="Copy Python").click()
    expect(shown.get_by_role("status").nth(1)).to_have_text("Python copied.")
    expect(shown.get_by_role("status").nth(1)).to_be_in_viewport()


@pytest.mark.parametrize("path", ["docs", "proxied/docs"])
def test_the_documentation_is_drawn_without_the_internet(
    browser: Browser, shipped: str, path: str
) -> None:
    context = browser.new_context()
    page = context.new_page()
    root = f"{shipped}/{path.removesuffix('docs')}"
    context.route(
        "**",
        lambda route: (
            route.continue_() if route.request.url.startswith((root, "data:")) else route.abort()
        ),
    )
    context.route("**/proxied/**", below_a_path)
    page.goto(f"{root}docs")
    expect(
        page.locator("#operations-models-embed_embed_post, [id$=embed_embed_post]").first
    ).to_be_visible()
    context.close()

"""The third tab: two sentences."""

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.page.visiting import accessible, answer_again, ask_service, follow, visit

TICKET = "The ticket costs 540 euros"
ANSWER = "#answer-compare:not([aria-busy])"
KIDS, ASLEEP = "Two kids at a ballgame wash their hands", "The children are asleep at home"
MEANINGS = {
    "entailment": "follows (entailment)",
    "neutral": "may be true or false (neutral)",
    "contradiction": "is false (contradiction)",
}


@pytest.fixture
def compare(page: Page) -> Page:
    follow(page, f"tab=compare&first={KIDS}&second={ASLEEP}")
    return page


def test_three_measures_in_one_view(compare: Page) -> None:
    """They are the service's answers; some words have evidence for and against, even at 100 %. A verdict of less than
    60 % is called a guess."""
    sure = set()
    for first, second in (("She is a doctor.", "She works in a hospital."), (KIDS, ASLEEP)):
        answer = follow(compare, f"tab=compare&first={first}&second={second}")
        scores = ask_service(compare, "nli", premise=first, hypothesis=second)["scores"]
        heading = answer.locator("h2").first.inner_text()
        assert heading.startswith("Not sure: perhaps the second") == (max(scores.values()) < 0.6)
        sure.add(max(scores.values()) >= 0.6)
        bars = answer.locator(".measures .scores > span").all_inner_texts()
        assert dict(zip(bars[::2], bars[1::2], strict=True)) == {
            MEANINGS[name]: f"{100 * share:.1f} %" for name, share in scores.items()
        }
        a, b = np.array(ask_service(compare, "embed", inputs=[first, second]))
        meter = answer.get_by_label("Similarity:")
        expect(meter).to_have_attribute("aria-label", f"Similarity: {a @ b:.2f}")
    assert sure == {True, False}
    assert scores["contradiction"] > 0.999
    numbers = answer.locator(".tokens small").all_inner_texts()
    assert len(numbers) == 16
    assert {"+", "\u2212"} <= {number[0] for number in numbers}


def test_a_word_lights_up_what_is_like_it_in_the_other_sentence(compare: Page) -> None:
    with compare.expect_response("**/explain") as answered:
        compare.get_by_role("button", name="Compare").click()
    cosines = np.array(answer_again(compare, answered.value)["similarity"])
    sides = [compare.locator(f"{ANSWER} .tokens").nth(side) for side in (0, 1)]
    for side, lines in enumerate((cosines, cosines.T)):
        for i, line in enumerate(lines):
            sides[side].locator("button").nth(i).hover()
            near = sides[1 - side].locator(".near")
            lit = near.evaluate_all("all => all.map(b => Number(b.dataset.token))")
            assert lit == [int(k) for k in np.flatnonzero(line >= line.max() - 0.02)]
    sides[1].locator("button").nth(3).focus()  # the keyboard does it as well
    expect(sides[0].locator(".near")).not_to_have_count(0)
    compare.locator("#first").focus()
    expect(compare.locator(".near")).to_have_count(0)


def test_changes_show_what_is_seen_and_missed(compare: Page) -> None:
    compare.get_by_role("button", name="one number").click()
    expect(compare.locator("#second")).to_have_value(TICKET)
    answer = compare.locator(ANSWER)
    rows = answer.locator(".changes tbody tr")
    expect(rows).to_have_count(1)
    for name, expected in (
        ("Change its number", f"{TICKET} → The ticket costs 1080 euros"),
        ("Negate the second", f"{TICKET} → It is not true that the ticket costs 540 euros"),
        ("Swap the two", f"{TICKET} → The ticket costs 450 euros"),
    ):
        with compare.expect_response("**/nli") as answered:
            answer.get_by_role("button", name=name).click()
        result = answer_again(compare, answered.value)
        row = rows.filter(has=compare.get_by_text(expected, exact=True))
        share = 100 * result["scores"][result["label"]]
        expect(row.locator("td").nth(1)).to_have_text(f"{result['label']} {share:.1f} %")
        seen = result["label"] == "contradiction"
        verb = "was" if "Swap" in name else "sees" if seen else "misses"
        expect(answer.locator(".remark")).to_contain_text(f"The verdict {verb}")
    accessible(compare)
    compare.get_by_role("button", name="on and off").click()
    expect(compare.get_by_role("button", name="Change its number")).to_be_disabled()


DENIED = {
    "The door is open": "The door is not open",
    "I cannot come": "I can come",
    "You have to pay": "You do not have to pay",
    "Turn on the light": "Turn off the light",
    "She sleeps": "It is not true that she sleeps",
}


def test_negation(compare: Page) -> None:
    negate = "async texts => texts.map((await import('/static/changes.js')).negated)"
    assert compare.evaluate(negate, list(DENIED)) == list(DENIED.values())


def test_relatedness(relating: str, browser: Browser) -> None:
    with visit(browser, f"{relating}/#tab=compare&first=two+dogs&second=a+man") as page:
        pairs = [{"a": "two dogs", "b": "a man"}]
        (score,) = ask_service(page, "relatedness", pairs=pairs)["scores"]
        meter = page.locator(ANSWER).get_by_label("Relatedness:")
        label = f"Relatedness: {score:.2f} on a scale of 1 to 5"
        expect(meter).to_have_attribute("aria-label", label)
        assert float(meter.get_attribute("value") or 0) == pytest.approx(score)

"""The second tab: labels of the user's and of trained classifiers, for a text or a file."""

import csv
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.page.visiting import (
    accessible,
    answer_again,
    ask_service,
    attach,
    enter,
    follow,
    save,
    visit,
)

BILL = "My credit card was charged twice, please send one payment back."
LABELS = "billing%0Adelivery%0Aaccount%0Abroken product"


@pytest.fixture
def label(page: Page) -> Page:
    follow(page, f"tab=label&model=&text={BILL}&labels={LABELS}")
    return page


def test_labels_of_ones_own_are_tags(label: Page) -> None:
    """Each change asks again; the bars are the service's scores, with none of these apart."""
    field = label.get_by_label("Your labels", exact=True).and_(label.locator("input"))
    field.fill("sports, cooking")
    with label.expect_response("**/classify"):
        field.press("Enter")
    expect(label.locator(".tags li")).to_have_count(6)
    with label.expect_response("**/classify"):
        field.press("Backspace")  # the last tag
    with label.expect_response("**/classify") as answered:
        label.get_by_role("button", name="Remove the label billing").click()
    result = answer_again(label, answered.value)
    shares = {entry["label"]: entry["score"] for entry in result["labels"]}
    assert shares.keys() == {"delivery", "account", "broken product", "sports"}
    shares["None of these"] = result["none"]
    answer = label.locator("#answer-label:not([aria-busy])")
    expect(answer.locator(".bar")).to_have_count(5)
    texts = answer.locator(".scores > span").all_inner_texts()
    shown = dict(zip(texts[::2], texts[1::2], strict=True))
    assert shown == {name: f"{100 * share:.1f} %" for name, share in shares.items()}
    widths = (
        "all => all.map(bar => bar.getBoundingClientRect().width / bar.parentElement.clientWidth)"
    )
    parts = [float(share.removesuffix(" %")) / 100 for share in shown.values()]
    assert answer.locator(".bar > i").evaluate_all(widths) == pytest.approx(parts, abs=0.01)

    label.get_by_role("button", name="none of these").click()
    expect(answer.locator("h2")).to_have_text("None of these")
    expect(answer.locator(".scores > .best")).to_have_text(["None of these", re.compile("%")])


def test_no_labels_are_asked_for(label: Page) -> None:
    """And no answer is left to the labels before."""
    for _ in range(4):
        label.get_by_role("button", name="Remove the label").last.click()
    expect(label.locator("#error")).to_have_text("Add a label or two first.")
    expect(label.locator("#answer-label > *")).to_have_count(0)


def test_an_example_brings_its_labels_and_a_classifier_its_examples(label: Page) -> None:
    label.get_by_role("button", name="a recipe").click()
    expect(label.locator("#answer-label:not([aria-busy]) h2")).to_have_text("cooking")
    label.locator("#model-label").select_option("lama-r8")
    text = label.locator("#text").input_value()
    result = ask_service(label, "explain", inputs=text, model="lama-r8", trust=True)
    best = result["prediction"]["label"]
    unsure = "Not sure: perhaps " if result["prediction"]["scores"][best] < 0.5 else ""
    expect(label.locator("#answer-label h2")).to_have_text(unsure + best)
    assert result["trust"]["typical"] < 0.1
    expect(label.locator("#answer-label .trust")).to_contain_text("texts that it learned from")
    label.locator("#model-label").select_option("ms-san-trec")
    label.get_by_role("button", name=re.compile("^Who painted")).click()
    expect(label.locator("#answer-label h2")).to_have_text("person")
    label.get_by_role("button", name="Why this answer?").click()
    expect(label.locator("#why-text")).to_have_value(re.compile("^Who painted"))
    expect(label.locator("#answer-why .picture")).to_be_visible()


def test_a_file_is_labelled(label: Page, tmp_path: Path) -> None:
    """Row by row as alone; the table is saved with the file's columns. Of a long text the beginning is shown, and
    the whole of it on demand."""
    texts = ["Fry the onions.", "The team won the cup.", "Add salt to the soup."] * 15
    texts.append("Fry the onions. " * 700 + "Serve it hot.")
    rows = "".join(f"{i},{text}\n" for i, text in enumerate(texts))
    label.locator("#labels").evaluate("one => { one.value = 'cooking\\nsports'; }")
    attach(label, "#label-file", "rows.csv", f"id,text\n{rows}")
    answer = label.locator("#answer-label:not([aria-busy])")
    expect(answer.locator("h2")).to_contain_text("46 texts: cooking most often")
    shown = answer.locator(".labelled tbody tr")
    expect(shown).to_have_count(46)
    assert len(shown.last.inner_text()) < 500
    shown.last.get_by_text("The whole text (11,213 characters)").click()
    expect(shown.last.get_by_text("Serve it hot.")).to_be_visible()
    accessible(label)
    save(label, answer, "Save CSV", tmp_path / "labelled.csv")
    with (tmp_path / "labelled.csv").open(newline="") as saved:
        labelled = list(csv.DictReader(saved))
    assert [row["text"] for row in labelled] == texts
    answers = ask_service(label, "classify", inputs=texts[:3], labels=["cooking", "sports"])
    for row, result in zip(labelled, answers, strict=False):
        scores = {entry["label"]: entry["score"] for entry in result["labels"]}
        assert float(row["score cooking"]) == pytest.approx(scores["cooking"], abs=1e-3)
        assert row["label"] == (
            "None of these" if result["none"] > 0.5 else result["labels"][0]["label"]
        )


def test_a_text_may_have_several_labels_or_none(relating: str, browser: Browser) -> None:
    """None of a model that abstains; any number of one whose labels are not exclusive."""
    with visit(browser, f"{relating}/#tab=label&model=tiny-sst2") as page:
        expect(page.locator("#answer-label h2")).to_have_text("No label is probable enough")
        answer, numbers = follow(page, "tab=label&model=tiny-tags&text=good"), set()
        for text in ("bad", "dog", "two dogs wash", "their hands", "man is not bad"):
            with page.expect_response("**/classify") as answered:
                enter(page, "#text", text)
            ranked = answer_again(page, answered.value)
            likely = [one["label"] for one in ranked if one["score"] >= 0.5]
            heading = ", ".join(likely) or "No label is probable enough"
            expect(answer.locator("h2")).to_have_text(heading)
            expect(answer.locator(".scores > span.best:nth-child(3n + 1)")).to_have_text(likely)
            numbers.add(len(likely))
        assert numbers - {1}

"""The first tab: texts that are closest to a question."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.page.visiting import accessible, ask_service, attach, save, width_of

LINES = [
    *("A dog runs on the beach", "The stock market fell", "Two dogs play by the sea", "I like tea")
]
GRID = [f"The number of the house is {i}" for i in range(150)]
STAY = (
    "We came late on a Friday, and the desk was closed. The room was small, but it was clean and quiet, "
    "the bed was good, and the view over the harbour made up for the walk from the station. Breakfast was plain."
)
ARABIC = "مرحبا بالعالم"


def vectors(page: Page, texts: list[str]) -> np.ndarray:
    """The default model's vectors by the service: the reference for the page's results."""
    return np.array(ask_service(page, "embed", inputs=texts))


def results(page: Page) -> list[str]:
    return [text.strip() for text in page.locator(".results .text").all_inner_texts()]


def use(page: Page, lines: list[str]) -> None:
    """Pastes them, as a user does."""
    page.get_by_role("button", name="Paste your own texts").first.click()
    page.locator("#search-lines").fill("\n".join(lines))
    page.get_by_role("button", name="Use these texts").first.click()
    expect(page.locator("#search-collection .collected")).to_contain_text(f"{len(lines):,} texts")
    expect(page.locator(".results li").first).to_be_visible()
    expect(page.locator(".finding .timing")).to_contain_text(f"{len(lines):,} texts read in")


@pytest.fixture
def example(page: Page) -> Page:
    """The texts that the page opens with."""
    page.get_by_role("tab", name="Search").click()
    back = page.get_by_role("button", name="Back to the example")
    (back if back.count() else page.get_by_role("button", name="forgot my login")).click()
    expect(page.locator("#query")).to_have_value("forgot my login")
    expect(page.locator(".finding .timing")).to_contain_text("to compare it with 60 texts")
    return page


def test_the_first_paint_is_an_answered_example(browser: Browser, shipped: str) -> None:
    """A question, its answers and the map are in the window, and nothing moves when they come: the sum of
    layout shifts, as Chromium counts them, is at most the 0.1 that Web Vitals call good."""
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    context.add_init_script(
        "window.shifted = 0; new PerformanceObserver(list => list.getEntries().forEach("
        "one => { window.shifted += one.value; })).observe({type: 'layout-shift', buffered: true});"
    )
    page = context.new_page()
    page.goto(shipped)
    expect(page.locator(".results mark").first).to_be_visible()
    assert page.evaluate("window.shifted") < 0.1
    for part in (".results li", ".points canvas", ".clusters"):
        box = page.locator(part).first.bounding_box()
        assert box is not None
        assert box["y"] < 900, part
    expect(page.locator(".results li")).to_have_count(10)
    expect(page.locator(".finding .timing")).to_contain_text("to compare it with 60 texts")
    context.close()


def test_results_are_the_nearest_texts_as_one_types(example: Page, tmp_path: Path) -> None:
    """The example's question does not stay for other texts; that nothing is close is said, and that a model did
    not learn to search. The ranking is saved."""
    page = example
    use(page, LINES)
    expect(page.locator("#query")).to_have_value("")
    expect(page.locator("#query")).to_be_focused()
    for typed in ("d", "dog", "a violin", "money"):
        page.locator("#query").fill(typed)
        question, *texts = vectors(page, [typed, *LINES])
        cosines = np.array(texts) @ question
        order = [LINES[i] for i in np.argsort(-cosines)]
        expect(page.locator(".results .text")).to_have_text(order)
        nothing = page.get_by_text("Nothing here is close to the question")
        expect(nothing).to_have_count(int(cosines.max() < 0.3))
    save(page, page, "Save CSV", tmp_path / "search.csv")
    with (tmp_path / "search.csv").open(newline="") as file:
        saved = list(csv.DictReader(file))
    assert [row["text"] for row in saved] == order
    alike = [float(row["similarity"]) for row in saved]
    assert alike == pytest.approx(sorted(cosines, reverse=True), abs=1e-3)
    warning = page.locator(".finding .timing .refused", has_text="not to search")
    for model, count in (("ms-san-sst2", 1), ("ms-san-embed", 0)):
        page.select_option("#model-search", model)
        expect(warning).to_have_count(count)
    page.locator("#query").fill("")
    expect(page.locator(".results .text")).to_have_text(LINES)


@pytest.mark.parametrize(
    ("texts", "query", "between"),
    [(LINES, "where is the puppy?", r"\s+"), ([STAY, *LINES], "a quiet room", r"(?<=[.,])\s+")],
    ids=["words", "clauses"],
)
def test_marked_words_are_those_that_made_the_match(
    page: Page, texts: list[str], query: str, between: str
) -> None:
    """Without one of them the text is farther from the question than without any that is not marked: a word,
    or of a long text a clause, to which it is scrolled."""
    use(page, texts)
    page.locator("#query").fill(query)
    mark = page.locator(".results li").first.locator("mark")
    expect(mark.first).to_be_visible()
    expect(mark.first).to_be_in_viewport()
    marked = mark.all_inner_texts()
    parts = re.split(between, results(page)[0])
    shorter = [" ".join(parts[:i] + parts[i + 1 :]) for i in range(len(parts))]
    question, *left = vectors(page, [query, *shorter])
    without = np.array(left) @ question
    is_marked = np.array([part in marked for part in parts])
    assert without[is_marked].max() < without[~is_marked].min()


def test_the_same_and_the_opposite_are_said(example: Page) -> None:
    """Close texts have the verdict of /nli in both directions; a question is the opposite of nothing."""
    page = example
    question = "How do I turn off notifications?"
    page.locator("#query").fill(question)
    expect(page.locator(".results li").first).to_contain_text("say the same")
    texts = results(page)[:5]
    messages = page.locator(".results li").all_inner_texts()[:5]
    query, *text_vectors = vectors(page, [question, *texts])
    for text, line, vector in zip(texts, messages, text_vectors, strict=True):
        pairs = [{"premise": a, "hypothesis": b} for a, b in ((question, text), (text, question))]
        scores = [result["scores"] for result in ask_service(page, "nli", pairs=pairs)["results"]]
        both = min(score["entailment"] for score in scores)
        assert ("say the same" in line) == (both >= 0.7 and vector @ query >= 0.7), (text, both)
    assert "the opposite" not in "".join(messages)
    use(page, ["The shop is closed on Sunday.", "Is the shop open on Sunday?", "Dogs bark."])
    page.locator("#query").fill("The shop is open on Sunday.")
    opposite = page.locator(".results li").filter(has_text="the opposite")
    expect(opposite).to_contain_text("closed")
    expect(opposite).to_have_count(1)


FILES: dict[str, tuple[str | bytes, str | list[str]]] = {
    "lines.txt": ("\ufeffA dog\r\n\r\nA cat\r\n", ["A dog", "A cat"]),
    "table.csv": ('id,Title,body\n1,"Dogs, and cats",x\n2,Birds,y\n', ["Dogs, and cats", "Birds"]),
    "longest.csv": ("id;note\n1;a long text\n2;another\n", ["a long text", "another"]),
    "one.csv": ("A dog\nA cat\n", ["A dog", "A cat"]),
    "windows.csv": ("id\ttext\n1\tA café\n2\tTea\n".encode("cp1252"), ["A café", "Tea"]),
    "utf16.txt": ("A café\nTea\n".encode("utf-16"), ["A café", "Tea"]),
    "rows.jsonl": ('{"text": "A dog"}\n"A \\u0000cat \\ud800"\n', ["A dog", "A cat \ufffd"]),
    "page.pdf": ("x", "page.pdf is no .txt, .csv or .jsonl file"),
    "empty.txt": ("\n \n", "empty.txt holds no text"),
    "bad.jsonl": ('{"text": "a"}\n{text}\n', "Line 2 is no JSON"),
}
"""Name, content, and the texts that are searched or what is said; the collection stays then."""


def test_files_are_read(page: Page) -> None:
    use(page, LINES)
    page.locator("#query").fill("")
    shown = list(LINES)
    expect(page.locator(".results .text")).to_have_text(shown)
    for name, (content, expected) in FILES.items():
        attach(page, "#search-file", name, content)
        if isinstance(expected, str):
            expect(page.locator("#error")).to_contain_text(expected)
        else:
            named = page.locator("#search-collection .collected")
            expect(named).to_have_text(f"2 texts from {name}")
            expect(page.locator("#error")).to_have_text("")
            shown = list(expected)
        expect(page.locator(".results .text")).to_have_text(shown)


def test_a_result_shows_the_other_cells_of_its_row(page: Page) -> None:
    """The answer to a question of a FAQ: the end of a long one is a press away. Empty cells are left out."""
    long = "Yes, within 30 days. " * 20
    attach(
        page, "#search-file", "faq.csv", f'answer,id,question\n"{long}",7,A gift?\n,8,A parcel?\n'
    )
    cells = page.locator(".results li").filter(has_text="A gift?").locator(".cell")
    expect(cells).to_contain_text(["answer Yes", "id 7"])
    expect(cells.first).not_to_contain_text(long.strip(), use_inner_text=True)
    cells.first.locator("summary").click()
    expect(cells.first).to_contain_text("answer Yes")
    assert cells.first.inner_text().count("Yes") == 20
    accessible(page)
    parcel = page.locator(".results li").filter(has_text="A parcel?").locator(".cell")
    expect(parcel).to_have_text(["id 8"])


def test_a_dropped_file_of_many_rows_with_columns(page: Page) -> None:
    """The first 2,000 rows are taken; another column may be chosen."""
    rows = "".join(f"{i},note {i} of {i % 7},word{i % 5}\n" for i in range(2100))
    page.evaluate(
        """content => {
            const transfer = new DataTransfer();
            transfer.items.add(new File([content], "many.csv"));
            const panel = document.querySelector("#panel-search");
            panel.dispatchEvent(new DragEvent("drop", {dataTransfer: transfer, bubbles: true}));
        }""",
        "id,text,tag\n" + rows,
    )
    named = page.locator("#search-collection .collected")
    expect(named).to_have_text("2,000 texts from many.csv: the first 2,000 of 2,100")
    expect(page.locator(".finding .timing")).to_contain_text("2,000 texts read in")
    column = page.locator("#search-collection select")
    column.select_option("tag")
    expect(page.locator(".results .text").first).to_have_text(re.compile("^word"))
    page.wait_for_url(lambda url: "texts=" not in url)
    page.get_by_role("button", name="Back to the example").click()
    expect(column).to_be_hidden()


def test_groups_are_named_apart(page: Page) -> None:
    """Their names are words that their texts have more often than all texts, or a text if there are none."""
    texts = ["One red line", "Two red line", "One blue line", "Two blue line"]
    name = "async ([texts, of]) => (await import('/static/texts.js')).clusterWords(texts, of, 2)"
    assert page.evaluate(name, [texts, [0, 0, 1, 1]]) == [["red"], ["blue"]]
    alike = page.evaluate(name, [[f"Line number {i}" for i in range(4)], [0, 0, 1, 1]])
    assert alike == [["like “Line number 0…”"], ["like “Line number 2…”"]]


def test_near_duplicates_are_listed(page: Page) -> None:
    """They are those of the current texts, even while pairs of earlier texts are being counted."""
    texts = [*LINES, "A dog runs along the beach", "I like tea!", LINES[0]]
    use(page, GRID)
    use(page, LINES)
    page.get_by_text("Near-duplicates (0)").click()
    use(page, texts)
    slider = page.get_by_label("At least this much alike")
    for least in ("0.7", "0.95"):
        slider.fill(least)
        text_vectors = vectors(page, texts)
        cosines = text_vectors @ text_vectors.T
        pairs = np.argwhere(np.triu(cosines >= float(least), 1))
        expect(page.locator(".pairs li")).to_have_count(len(pairs))
    expect(page.locator(".pairs li").first).to_contain_text("the same text")
    slider.fill("0.7")
    differing = page.locator(".pairs li").filter(has_text="on the beachA dog runs along").first
    expect(differing.locator("mark")).to_have_text(["on", "along"])


def test_the_map(example: Page) -> None:
    """Arrow keys and the pointer read a text, Enter and a tap ask for it; a cluster may be shown alone."""
    page = example
    points = page.get_by_role("group", name="Map of 60 texts")
    points.focus()
    page.keyboard.press("ArrowRight")
    read = page.locator(".points + .read")
    first = read.inner_text()
    page.keyboard.press("ArrowRight")
    expect(read).not_to_have_text(first)
    second = read.inner_text()
    page.keyboard.press("Enter")
    expect(page.locator("#query")).to_have_value(second)
    expect(page.locator(".results .text").first).to_have_text(second)
    page.get_by_role("button", name="Back to “forgot my login”").click()
    expect(page.locator("#query")).to_have_value("forgot my login")
    expect(page.locator(".results .text").first).not_to_have_text(second)

    page.locator(".results li").nth(1).hover()
    expect(read).to_have_text(results(page)[1])
    cluster = page.locator(".clusters button").first
    size = int(cluster.locator("small").inner_text())
    cluster.click()
    expect(page.locator(".results li")).to_have_count(size)
    expect(page.locator("#answer-search h2").first).to_contain_text("in the group")
    expect(cluster).to_have_attribute("aria-pressed", "true")
    accessible(page)


def test_the_matrix_is_whole(page: Page) -> None:
    page.set_viewport_size({"width": 1280, "height": 900})
    use(page, GRID)
    matrix = page.locator("details", has_text="Similarity of every two texts").last
    matrix.evaluate("one => { one.open = true; }")
    name = page.get_by_text(f"How alike every two of {len(GRID)} texts are")
    expect(name).to_be_visible()
    box = page.locator(".matrix canvas").bounding_box()
    assert box is not None
    assert box["width"] == box["height"] <= 700
    assert width_of(page) <= 1280
    page.locator(".square").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")  # round to the last column
    read = page.locator(".matrix .read").inner_text()
    cosine, first, last, second = re.fullmatch(r"(.*): 1 “(.*)” and (\d+) “(.*)”", read).groups()  # type: ignore[union-attr]
    assert int(last) == len(GRID)
    a, b = vectors(page, [first, second])
    assert float(cosine) == pytest.approx(float(a @ b), abs=2e-3)
    accessible(page)  # near-duplicates are open too


def test_on_a_phone_in_the_dark(page: Page) -> None:
    page.set_viewport_size({"width": 375, "height": 740})
    page.select_option("#theme", "dark")  # wide windows are light
    use(page, [*LINES, "x" * 400, ARABIC])
    arabic = page.locator(".results .text", has_text=ARABIC)
    expect(arabic).to_have_css("direction", "rtl")
    for tab in ("Search", "Label", "Compare", "Why"):
        page.get_by_role("tab", name=tab).click()
        answer = page.locator(f"#answer-{tab.lower()}:not([aria-busy]) h2").first
        expect(answer).to_be_visible()
        assert width_of(page) <= 375
        accessible(page)
    page.select_option("#theme", "auto")
    page.get_by_role("tab", name="Search").click()

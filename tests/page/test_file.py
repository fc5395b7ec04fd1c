"""The pages of `heedful explain` and `heedful fit`, opened from the disk in a real Chromium."""

from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser

from heedful.cli.explain import command
from heedful.cli.fit_page import page as fit_page
from heedful.cli.scores import by_class
from tests.page.accessible import accessible
from tests.page.visiting import width_of

KIDS = "Two kids at a ballgame wash their hands"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("written") / "pair.html"
    command(KIDS, "The children are asleep at home", "ms-san-nli", to=file, models=Path("bundles"))
    return file


def test_it_opens_from_the_disk_and_asks_for_nothing(written: Path, browser: Browser) -> None:
    """The file comes first: Playwright's loop runs from then on."""
    messages: list[str] = []
    urls: list[str] = []
    page = browser.new_page(viewport={"width": 360, "height": 740})
    page.on("console", lambda message: messages.append(message.text))
    page.on("request", lambda request: urls.append(request.url))
    page.goto(written.as_uri())
    assert page.title() == "What ms-san-nli attends to"
    assert page.locator("figure[data-map]").count() == 13  # six heads a side, and across
    assert page.locator("path.arc").count() == 8 + 6  # with full stops
    assert width_of(page) <= 360
    assert (messages, urls) == ([], [written.as_uri()])
    accessible(page)
    page.close()


def content(classes: int) -> dict[str, object]:
    """A report of so many labels, 4,321 rows each."""
    labels = [f"a long name of class {i}" for i in range(classes)]
    table = [[4321 if i == j else 87 for j in range(classes)] for i in range(classes)]
    score = {"score": 0.9, "low": 0.85, "high": 0.95, "deviation": 0.01, "macro_f1": 0.9}
    score |= {"log_loss": 0.3, "rows": 500, "seconds": 3.0, "chosen": True}
    counts = np.full(classes, 4321)
    return {
        "bundle": "ms-san-mails",
        "version": "0123456789ab",
        "file": "mails.csv",
        "rows": 500,
        "repeated": 0,
        "labels": dict.fromkeys(labels, 4321),
        "held_out": "every row once, in 5 parts",
        "most_frequent_label": 0.5,
        "metric": "accuracy",
        "candidates": [{"name": "TF-IDF + frozen vectors + LR, C 10", **score}],
        "references": [],
        "skipped": [],
        "temperature": 1.0,
        "risk_coverage": [(1.0, 0.9)],
        "classes": by_class(labels, counts, counts, counts),
        "confusion": table,
        "words": {label: ["a word and another"] * 12 for label in labels},
        "suspects": [{"line": 7, "label": labels[0], "answer": labels[1], "text": "word " * 60}],
    }


@pytest.mark.parametrize("classes", [2, 8, 20])
def test_a_report_fits_375_pixels(browser: Browser, tmp_path: Path, classes: int) -> None:
    file = tmp_path / "report.html"
    file.write_text(fit_page(content(classes)))
    opened = browser.new_page(viewport={"width": 375, "height": 700})
    opened.goto(f"file://{file}")
    assert width_of(opened) <= 375
    fits = "table => table.scrollWidth <= table.clientWidth"
    if classes <= 8:
        table = opened.locator("table.confusion")
        assert table.evaluate(fits)
        assert table.locator("tr").count() == classes + 1
    else:
        table_of_labels = opened.locator("h2", has_text="Which label").locator("+ table")
        assert table_of_labels.evaluate(fits)
    opened.close()

"""An answer of /explain as a page: it holds its numbers, and none of its text is markup."""

import json
import re
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from heedful.app.routes.pages import STATIC
from heedful.library.explain_page import html

MAP = [[1.0, 0.0, 0.0], [0.25, 0.75, 0.0], [0.5, 0.125, 0.375]]


def sentence(*words: str) -> dict[str, Any]:
    arcs = [
        {"start": i, "end": i + 1, "label": "<dep>", "dir": "left"} for i in range(len(words) - 1)
    ]
    return {
        "text": " ".join(words),
        "tokens": [{"text": word} for word in words],
        "tree": {"displacy": {"words": [{"text": w, "tag": ""} for w in words], "arcs": arcs}},
        "maps": [
            {"name": "forward, word distance", "weights": MAP},
            {"name": "head 1", "weights": [[0.2, 0.3, 0.5]]},
        ],
        "gate": [{"name": "fusion gate", "weights": [0.9, 0.5, 0.1]}],
        "pooling": [{"name": "attentive pooling", "weights": [0.1, 0.7, 0.2]}],
    }


def answer(*words: str) -> dict[str, Any]:
    return {
        "model": "tiny-nli",
        "priors": {"direction": False, "alpha": 0.5},
        "sentences": [sentence(*words), sentence("the", "dog", "sleeps")],
        "prediction": {"label": "neutral", "scores": {"neutral": 0.75, "contradiction": 0.25}},
        "similarity": [[0.5, -0.25, 1.0]] * 3,
    }


KIDS = answer("two", "kids", "wash")


def data(page: str) -> Any:
    """The answer that a page holds."""
    (held,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page)
    return json.loads(held)


def test_the_page_holds_the_answer_and_the_services_drawing() -> None:
    page = html(KIDS)
    assert data(page) == KIDS
    assert data(html({**KIDS, "similarity": np.array(KIDS["similarity"])})) == KIDS
    assert "<h1>What tiny-nli attends to</h1>" in page
    assert "<p>Priors: direction off, alpha 0.5</p>" in page
    for file in ("page.css", "vendor/d3.min.js"):
        assert (STATIC / file).read_text() in page
    assert not re.search(r"^import ", page, re.MULTILINE)
    assert all(page.count(f"function {name}(") == 1 for name in ("judgement", "pictures", "term"))


def test_nothing_is_loaded_from_anywhere() -> None:
    page = html(KIDS)
    assert "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'" in page
    assert not re.search(r"<(?:link|img|iframe)|(?:src|href)=\"", page)


@given(st.text(min_size=1).filter(lambda word: word.split() == [word]))
def test_any_word_is_text_and_never_markup(word: str) -> None:
    drawn = answer(word, "<script>alert(1)</script>", '"&')
    page = html(drawn)
    assert data(page) == drawn
    assert page.count("<script") == 3

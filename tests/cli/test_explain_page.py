"""An answer of /explain as HTML and SVG: they hold its numbers, and none of its text is markup."""

import json
import re
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.app.routes.demo_page import STATIC
from heedful.library.explain_page import html, standalone_svg

SVG = "{http://www.w3.org/2000/svg}"
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


def titles(drawn: str) -> list[str]:
    return re.findall("<title>(.* → .*)</title>", drawn.replace("</rect>", "</rect>\n"))


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
    for file in ("draw.js", "page.css", "vendor/d3.min.js"):
        assert (STATIC / file).read_text() in page


def test_every_number_of_the_answer_is_drawn() -> None:
    drawn = standalone_svg(KIDS)
    cells = titles(drawn)
    assert cells[:4] == [
        "two → two: 100.0 %",
        "two → kids: 0.0 %",
        "two → wash: 0.0 %",
        "kids → two: 25.0 %",
    ]
    assert cells[9] == "sentence → two: 20.0 %"
    assert cells[-3:] == ["wash → the: 0.50", "wash → dog: -0.25", "wash → sleeps: 1.00"]
    assert len(cells) == 2 * (9 + 3) + 9
    assert drawn.count("stroke-dasharray") == 2 * 3  # what is exactly 0
    for said in (
        *("What tiny-nli attends to", "direction off, alpha 0.5", "Prediction: neutral"),
        *("75.0 %", "fusion gate", "90.0 %", "attentive pooling", "70.0 %", "two kids wash"),
    ):
        assert said in drawn
    assert drawn.count('class="displacy-arrow"') == 4


def test_shades_follow_the_weights() -> None:
    root = ElementTree.fromstring(standalone_svg(KIDS))
    shades = {
        str(rect.findtext(f"{SVG}title")): float(rect.get("fill-opacity", 0))
        for rect in root.iter(f"{SVG}rect")
    }
    assert shades["two → two: 100.0 %"] == 1
    assert shades["two → kids: 0.0 %"] == 0
    assert shades["kids → two: 25.0 %"] == pytest.approx(0.04 + 0.96 * 0.25)
    assert shades["wash → dog: -0.25"] == pytest.approx(0.04 + 0.96 * 0.375)


def test_the_svg_is_as_large_as_what_it_holds() -> None:
    root = ElementTree.fromstring(standalone_svg(KIDS))
    width, height = (float(root.get(side, 0)) for side in ("width", "height"))
    (inside,) = root.findall(f"{SVG}svg")
    for part in inside.findall(f"{SVG}svg"):
        assert float(part.get("y", 0)) + float(part.get("height", 0)) <= height
        assert float(part.get("x", 0)) + float(part.get("width", 0)) <= width


def test_nothing_is_loaded_from_anywhere() -> None:
    page = html(KIDS)
    assert "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'" in page
    assert not re.search(r"<(?:link|img|iframe)|(?:src|href)=\"", page)
    for found in re.findall(r"https?://[^\"' ]+|(?:src|href)=\"[^\"]*", standalone_svg(KIDS)):
        assert found.startswith(("http://www.w3.org/", 'href="#arrow-tree-'))


def test_the_same_answer_is_the_same_file() -> None:
    assert html(KIDS) == html(answer("two", "kids", "wash"))
    assert standalone_svg(KIDS) == standalone_svg(answer("two", "kids", "wash"))


def test_relatedness_is_said() -> None:
    found = {**KIDS, "relatedness": 3.456}
    del found["prediction"]
    assert "Relatedness: 3.46, of 1 to 5" in standalone_svg(found)
    assert data(html(found))["relatedness"] == 3.456


@given(st.text(min_size=1).filter(lambda word: word.split() == [word]))
def test_any_word_is_text_and_never_markup(word: str) -> None:
    drawn = answer(word, "<script>alert(1)</script>", '"&')
    root = ElementTree.fromstring(standalone_svg(drawn))
    assert root.tag == f"{SVG}svg"
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {
        *("svg", "g", "rect", "text", "tspan", "textPath", "path", "title"),
    }
    page = html(drawn)
    assert data(page) == drawn
    assert page.count("<script") == 3


@pytest.mark.parametrize(
    ("scores", "said"),
    [((0.5, 0.9), "b, a"), ((0.2, 0.9), "b"), ((0.2, 0.4), "none is probable enough")],
)
def test_where_a_text_may_have_several_labels_the_probable_ones_are_named(
    scores: tuple[float, float], said: str
) -> None:
    found = {
        **KIDS,
        "prediction": {"label": "b", "scores": dict(zip("ab", scores, strict=True))},
    }
    assert f"Prediction: {said}<" in standalone_svg(found, several=True)
    assert "judgement(answer, true)" in html(found, several=True)
    assert "Prediction: b<" in standalone_svg(found)
    assert "judgement(answer, false)" in html(found)

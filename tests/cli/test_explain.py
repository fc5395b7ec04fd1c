"""`heedful explain`: the page holds its numbers, none of its text is markup, and the file is the library's."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import heedful as library
from heedful.app.routes.pages import STATIC
from heedful.cli.explain import command, read_priors
from heedful.library.explain_page import html
from heedful.runtime.errors import BadInput, StartupError, WrongTask
from heedful.runtime.explain.run import ExplainOptions

KIDS = "Two kids at a ballgame wash their hands"
MAP = [[1.0, 0.0, 0.0], [0.25, 0.75, 0.0], [0.5, 0.125, 0.375]]


def answer(*words: str) -> dict[str, Any]:
    """What /explain answers of two sentences."""
    sentences = []
    for one in (words, ("the", "dog", "sleeps")):
        arcs = [{"start": i, "end": i + 1, "label": "<dep>", "dir": "left"} for i in range(2)]
        drawn = {"words": [{"text": w, "tag": ""} for w in one], "arcs": arcs}
        maps = {"forward, word distance": MAP, "head 1": [[0.2, 0.3, 0.5]]}
        sentences.append(
            {
                "text": " ".join(one),
                "tokens": [{"text": word} for word in one],
                "tree": {"displacy": drawn},
                "maps": [{"name": name, "weights": weights} for name, weights in maps.items()],
                "gate": [{"name": "fusion gate", "weights": [0.9, 0.5, 0.1]}],
                "pooling": [{"name": "attentive pooling", "weights": [0.1, 0.7, 0.2]}],
            }
        )
    return {
        "model": "tiny-nli",
        "priors": {"direction": False, "alpha": 0.5},
        "sentences": sentences,
        "prediction": {"label": "neutral", "scores": {"neutral": 0.75, "contradiction": 0.25}},
        "similarity": [[0.5, -0.25, 1.0]] * 3,
    }


def data(page: str) -> Any:
    """The answer that a page holds."""
    (held,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page)
    return json.loads(held)


def test_the_page_holds_the_answer_and_the_services_drawing_and_loads_nothing() -> None:
    kids = answer("two", "kids", "wash")
    page = html(kids)
    assert data(page) == kids
    assert data(html({**kids, "similarity": np.array(kids["similarity"])})) == kids
    assert "<h1>What tiny-nli attends to</h1>" in page
    assert "<p>Priors: direction off, alpha 0.5</p>" in page
    for file in ("page.css", "vendor/d3.min.js"):
        assert (STATIC / file).read_text() in page
    assert not re.search(r"^import ", page, re.MULTILINE)
    assert all(page.count(f"function {name}(") == 1 for name in ("judgement", "pictures", "term"))
    assert "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'" in page
    assert not re.search(r"<(?:link|img|iframe)|(?:src|href)=\"", page)


@given(st.text(min_size=1).filter(lambda word: word.split() == [word]))
def test_any_word_is_text_and_never_markup(word: str) -> None:
    drawn = answer(word, "<script>alert(1)</script>", '"&')
    page = html(drawn)
    assert data(page) == drawn
    assert page.count("<script") == 3


@pytest.mark.parametrize(
    ("second", "model", "priors"),
    [
        (None, "tiny-sst2", "dependency=false,alpha=0.5"),
        (None, "tiny-several", ""),
        ("Kids wash.", "tiny-nli", ""),
        ("Kids wash.", "tiny-related", ""),
    ],
)
def test_the_file_holds_what_the_library_explains(
    models: Path, tmp_path: Path, second: str | None, model: str, priors: str
) -> None:
    file = tmp_path / "new" / "one.html"
    command(KIDS, second, model, priors, to=file, models=models)
    options = ExplainOptions(
        {"dependency": False} if priors else {}, 0.5 if priors else None, evidence=True
    )
    with library.load(model, models=models) as loaded:
        found = loaded.explain(KIDS, second, options=options)
    assert file.read_text("utf-8") == found.html
    answer = data(file.read_text("utf-8"))
    assert len(answer["evidence"]["sentences"]) == (1 if second is None else 2)
    assert answer["model"] == model
    assert list(file.parent.iterdir()) == [file]
    command(KIDS, second, model, to=file, models=models, evidence=False)  # over the older one
    assert "evidence" not in data(file.read_text("utf-8"))
    with pytest.raises(BadInput, match=r"--to: cannot write .*one\.html/file\.html"):
        command(KIDS, second, model, to=file / "file.html", models=models)


@pytest.mark.parametrize(
    ("asked", "error", "said"),
    [
        ({"model": "nobody"}, StartupError, "there is no bundle 'nobody'"),
        ({"hypothesis": KIDS, "model": "tiny-sst2"}, WrongTask, "tiny-sst2 does not do nli"),
        ({"text": " "}, BadInput, "text.* is blank"),
        ({"priors": "word=false", "model": "tiny-sst2"}, BadInput, "tiny-sst2 has no such prior"),
        ({"text": "kids " * 300}, BadInput, "is longer than .*: shorten it$"),
        # Before it looks for a model.
        ({"to": Path("x.pdf"), "models": Path("nowhere")}, BadInput, "a name that ends in .html"),
    ],
)
def test_what_cannot_be_explained_leaves_no_file(
    models: Path, tmp_path: Path, asked: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        command(**{"text": KIDS, "to": tmp_path / "file.html", "models": models, **asked})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("word", "'word' is not name=true"),
        ("word=off", "'word=off' is not name=true"),
        ("word=1", "--priors: word: Input should be a valid boolean"),
        ("tree=false", "--priors: tree: Extra inputs are not permitted"),
        ("alpha=-1", "--priors: alpha: Input should be greater than or equal to 0"),
    ],
)
def test_priors_that_cannot_be_read_are_named(typed: str, said: str) -> None:
    with pytest.raises(BadInput, match=re.escape(said)):
        read_priors(typed)

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
from heedful.cli.explain import command
from heedful.library.explain_page import html
from heedful.runtime.explain.run import ExplainOptions

KIDS = "Two kids at a ballgame wash their hands"


def data(page: str) -> Any:
    """The answer that a page holds."""
    (held,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page)
    return json.loads(held)


@given(st.text(min_size=1).filter(lambda word: word.split() == [word]))
def test_any_word_is_text_and_never_markup(word: str) -> None:
    """That it draws them, and loads nothing: tests/page/test_why.py, in a browser."""
    words = [word, "<script>alert(1)</script>", '"&']
    answer = {"model": "tiny-nli", "priors": {"direction": False}, "sentences": words}
    page = html({**answer, "similarity": np.eye(2)})
    assert data(page) == {**answer, "similarity": [[1, 0], [0, 1]]}
    assert page.count("<script") == 3
    assert "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'" in page


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
        if model == "tiny-several":  # whose scores do not add up to 1
            scores = list(found.answer["prediction"]["scores"].values())
            np.testing.assert_allclose(scores, loaded.predict_proba([KIDS])[0], atol=1e-6)
    assert file.read_text("utf-8") == found.html
    answer = data(file.read_text("utf-8"))
    assert len(answer["evidence"]["sentences"]) == (1 if second is None else 2)
    assert answer["model"] == model
    assert ("<p>Priors: dependency off, alpha 0.5</p>" in found.html) == bool(priors)
    assert list(file.parent.iterdir()) == [file]
    command(KIDS, second, model, to=file, models=models, evidence=False)  # over the older one
    assert "evidence" not in data(file.read_text("utf-8"))

"""`heedful explain` on tiny bundles: the file holds what the library explains."""

import re
from pathlib import Path
from typing import Any

import pytest

import heedful as library
from heedful.cli.explain import command, read_priors
from heedful.runtime.errors import BadInput, StartupError, WrongTask
from heedful.runtime.explain.run import ExplainOptions
from tests.cli.test_explain_page import data

KIDS = "Two kids at a ballgame wash their hands"


def written(file: Path) -> str:
    return file.read_text(encoding="utf-8")


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
    assert written(file) == found.html
    answer = data(written(file))
    assert len(answer["evidence"]["sentences"]) == (1 if second is None else 2)
    assert answer["model"] == model
    assert list(file.parent.iterdir()) == [file]
    command(KIDS, second, model, to=file, models=models, evidence=False)  # over the older one
    assert "evidence" not in data(written(file))


@pytest.mark.parametrize(
    ("asked", "error", "said"),
    [
        ({"model": "nobody"}, StartupError, "there is no bundle 'nobody'"),
        ({"hypothesis": KIDS, "model": "tiny-sst2"}, WrongTask, "tiny-sst2 does not do nli"),
        ({"text": " "}, BadInput, "text.* is blank"),
        ({"priors": "word=false", "model": "tiny-sst2"}, BadInput, "tiny-sst2 has no such prior"),
        ({"text": "kids " * 300}, BadInput, "is longer than .*: shorten it$"),
        # Before it looks for a model.
        (
            {"to": Path("x.pdf"), "models": Path("nowhere")},
            BadInput,
            "give a name that ends in .html",
        ),
    ],
)
def test_what_cannot_be_explained_leaves_no_file(
    models: Path, tmp_path: Path, asked: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        command(**{"text": KIDS, "to": tmp_path / "file.html", "models": models, **asked})
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_written_is_named(models: Path, tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("a file")
    with pytest.raises(BadInput, match=r"--to: cannot write .*plain/file\.html"):
        command(KIDS, to=tmp_path / "plain" / "file.html", models=models)


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

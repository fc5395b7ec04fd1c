"""`heedful explain` on tiny bundles: the file holds what /explain answers."""

import asyncio
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful.cli.explain import Question, explained, read_priors, write
from heedful.library.explain_page import html
from heedful.runtime.errors import BadInput, UnknownModel, WrongTask
from heedful.runtime.explain.run import ExplainOptions
from heedful.runtime.service import Options, running
from tests.builders import build_bundle, build_models
from tests.cli.test_explain_page import data
from tests.cli.test_main import heedful

KIDS = "Two kids at a ballgame wash their hands"


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> Options:
    models = tmp_path_factory.mktemp("models")
    parser = build_models(models)
    build_bundle(models, parser, name="tiny-related", kind="relatedness", explain=True)
    return Options(models, threads=1)


def ask(options: Options, *texts: str, **asked: Any) -> Any:
    async def run() -> Any:
        async with running(options) as service:
            task: Any = "explain" if len(texts) == 1 else "nli"
            return await explained(service, list(texts), ExplainOptions(**asked), task=task)

    return asyncio.run(run())


def test_a_sentence_is_written_as_the_service_explains_it(options: Options, tmp_path: Path) -> None:
    file = tmp_path / "new" / "one.html"
    write(Question(KIDS, priors="dependency=false,alpha=0.5"), file, options)
    found = ask(options, KIDS, priors={"dependency": False}, alpha=0.5)
    assert file.read_text(encoding="utf-8") == html(found)
    assert found["model"] == "tiny-sst2"
    assert found["priors"] == {"dependency": False, "alpha": 0.5}
    weights = np.array(found["sentences"][0]["maps"][0]["weights"])
    (shown,) = data(html(found))["sentences"]
    np.testing.assert_array_equal(shown["maps"][0]["weights"], weights)
    assert list(file.parent.iterdir()) == [file]


def test_the_file_of_a_model_of_several_labels_says_so(tmp_path: Path) -> None:
    models, file = tmp_path / "models", tmp_path / "several.html"
    models.mkdir()
    build_bundle(models, build_models(models), name="tiny-several", multi_label=True, explain=True)
    write(Question(KIDS, model="tiny-several"), file, Options(models, threads=1))
    assert "judgement(answer, true)" in file.read_text(encoding="utf-8")


def test_a_pair_is_written_over_an_older_file(options: Options, tmp_path: Path) -> None:
    file = tmp_path / "pair.html"
    file.write_text("older")
    write(Question(KIDS, "Kids wash."), file, options)
    answer = data(file.read_text(encoding="utf-8"))
    assert answer["prediction"] == ask(options, KIDS, "Kids wash.")["prediction"]
    assert len(answer["similarity"]) == 8


def test_a_relatedness_model_says_how_related_the_two_are(options: Options, tmp_path: Path) -> None:
    file = tmp_path / "pair.html"
    write(Question(KIDS, "Kids wash.", "tiny-related"), file, options)
    assert 1 <= data(file.read_text(encoding="utf-8"))["relatedness"] <= 5


@pytest.mark.parametrize(
    ("question", "error", "said"),
    [
        (Question(KIDS, model="nobody"), UnknownModel, "there is no model 'nobody'"),
        (Question(KIDS, KIDS, "tiny-sst2"), WrongTask, "tiny-sst2 does not do nli"),
        (Question(" "), BadInput, "the text "),
        (Question(KIDS, " "), BadInput, "--hypothesis "),
        (Question(KIDS, priors="word=false"), BadInput, "tiny-sst2 has no such prior"),
        (Question("kids " * 300), BadInput, "the text is longer than .*: shorten it$"),
    ],
)
def test_what_cannot_be_explained_leaves_no_file(
    options: Options, tmp_path: Path, question: Question, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        write(question, tmp_path / "file.html", options)
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_written_is_named(options: Options, tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("a file")
    with pytest.raises(BadInput, match=r"--to: cannot write .*plain/file\.html"):
        write(Question(KIDS), tmp_path / "plain" / "file.html", options)


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


def test_no_priors_are_as_trained() -> None:
    assert read_priors("") == ExplainOptions()


def test_the_command_refuses_a_suffix_before_it_loads_a_model(tmp_path: Path) -> None:
    refused = heedful("explain", KIDS, "--to", str(tmp_path / "x.pdf"), "--models", "nowhere")
    assert refused.returncode == 1
    assert refused.stderr.endswith("give a name that ends in .html\n")
    assert refused.stderr.count("\n") == 1

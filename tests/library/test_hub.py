"""heedful push and pull against a stand-in of the hub, which huggingface_hub itself talks to."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import huggingface_hub
import numpy as np
import pytest
import yaml
from huggingface_hub import HfApi

import heedful
from heedful.cli.push import push
from heedful.library import hub as library
from heedful.library.hub import HubError, pull
from heedful.runtime.errors import BundleError
from heedful.text.parse import fingerprint
from tests.library.hub_server import Repositories, hub
from tests.writing import put

NAME = "someone/tiny"


@pytest.fixture
def repositories(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Repositories]:
    with hub("hf_secret") as (address, repositories):
        for module in (library, huggingface_hub):  # `push` imports it when it is called
            monkeypatch.setattr(module, "HfApi", partial(HfApi, endpoint=address))
        monkeypatch.setattr(library, "CACHE", tmp_path / "cache")
        monkeypatch.setenv("HF_TOKEN", "hf_secret")
        yield repositories


@pytest.fixture
def pushed(repositories: Repositories, models: Path) -> Repositories:
    assert "/someone/tiny/commit/" in push(models / "tiny-sst2", NAME)
    return repositories


def test_what_is_pulled_is_what_was_pushed(
    pushed: Repositories, models: Path, tmp_path: Path
) -> None:
    folder = pull(NAME, tmp_path / "new")
    assert folder == tmp_path / "new" / "tiny-sst2"
    for path in (models / "tiny-sst2").iterdir():
        assert (folder / path.name).read_bytes() == path.read_bytes()
    assert fingerprint(tmp_path / "new" / "parser") == fingerprint(models / "parser")
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["parser", "tiny-sst2"]
    texts = ["two kids", "the dog is bad"]
    with heedful.load(f"hf://{NAME}") as pulled, heedful.load(models / "tiny-sst2") as local:
        np.testing.assert_array_equal(pulled.predict_proba(texts), local.predict_proba(texts))
    pushed.clear()
    heedful.load(f"hf://{NAME}").close()  # from the cache


def test_a_revision_may_be_named(pushed: Repositories, models: Path, tmp_path: Path) -> None:
    pushed[f"{NAME}@v1"] = dict(pushed[NAME])
    push(models / "tiny-nli", NAME)
    pushed[f"{NAME}@v2"] = dict(pushed[NAME])
    for tag, wanted in (("@v1", "tiny-sst2"), ("@v2", "tiny-nli"), ("", "tiny-nli")):
        with heedful.load(f"hf://{NAME}{tag}") as model:
            assert model.card.name == wanted
        assert pull(f"{NAME}{tag}", tmp_path / f"new{tag}").name == wanted
    with pytest.raises(HubError, match="v3"):
        pull(f"{NAME}@v3", tmp_path / "other")


def test_the_model_card_is_the_hubs(pushed: Repositories, models: Path) -> None:
    text = pushed[NAME]["README.md"].decode()
    head = yaml.safe_load(text.split("---\n")[1])
    assert head["license"] == "apache-2.0"
    assert (head["library_name"], head["pipeline_tag"]) == ("heedful", "text-classification")
    [result] = head["model-index"][0]["results"]
    assert result["dataset"] == {"type": "toy", "name": "toy", "split": "test"}
    assert result["metrics"] == [{"type": "accuracy", "value": 0.5}]
    assert 'heedful.load("hf://someone/tiny")' in text
    assert json.loads((models / "tiny-sst2/card.json").read_text())["version"] in text


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("encoder.onnx", "not the file that card.json names"),
        ("card.json", "version is not that of the card"),
        ("parser/config.cfg", "was made with the parser"),
    ],
)
def test_a_changed_file_is_refused_and_nothing_is_written(
    pushed: Repositories, tmp_path: Path, file: str, message: str
) -> None:
    pushed[NAME][file] = pushed[NAME][file].replace(b'"cost": "linear"', b'"cost": "quadratic"')
    if file != "card.json":
        pushed[NAME][file] += b" "
    with pytest.raises(BundleError, match=message):
        pull(NAME, tmp_path / "new")
    assert list((tmp_path / "new").iterdir()) == []


def test_what_would_not_fit_is_refused(pushed: Repositories, tmp_path: Path) -> None:
    """`pull` refuses another version, other files and another parser."""
    with pytest.raises(BundleError, match=r"is version [0-9a-f]{12}, not 012345678901"):
        pull(NAME, tmp_path / "new", version="012345678901")
    notes = put(tmp_path, "new/tiny-sst2/notes.txt", "years of work")
    with pytest.raises(BundleError, match="not empty: name a new folder"):
        pull(NAME, tmp_path / "new")
    assert notes.read_text() == "years of work"
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["tiny-sst2"]
    (tmp_path / "other" / "parser").mkdir(parents=True)
    with pytest.raises(BundleError, match=r"which .*other.parser does not hold"):
        pull(NAME, tmp_path / "other")


def test_the_hubs_refusals_are_one_line(
    repositories: Repositories, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(HubError, match=r"the hub and someone/nothing: .*404"):
        pull("someone/nothing", tmp_path / "new")
    with pytest.raises(HubError, match=r"the hub and a/b/c: .*repo"):
        pull("a/b/c", tmp_path / "new")
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    with pytest.raises(HubError, match=r"the hub and someone/tiny: .*401"):
        push(models / "tiny-sst2", NAME)
    monkeypatch.setattr(library, "HfApi", partial(HfApi, endpoint="http://127.0.0.1:9"))
    with pytest.raises(HubError, match="the hub and someone/tiny: "):
        pull(NAME, tmp_path / "new")

"""A bundle's folder answers in this process as a service does over HTTP."""

import json
import shutil
import threading
from pathlib import Path

import pytest

from heedful.cli import evaluate, selftest
from heedful.cli.local_model import open_folder
from heedful.runtime.errors import BundleError
from heedful.training import checkpoint
from heedful.training.errors import ConfigError
from heedful.training.evaluate import label_mismatch_warnings
from heedful.training.tasks.base import Source, Task
from tests.builders import BuiltParser, build_bundle, build_models

NONE = Source("none", "CC0-1.0", "none", lambda _: [])
TEXTS = ["two kids wash their hands", "the dog", "a man is not good", "bad", "kids " * 30]
"""The last one is too long and is cut."""


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    parser = build_models(folder)
    build_bundle(folder, parser, name="tiny-related", kind="relatedness")
    return folder


def test_neither_neighbours_nor_the_services_settings_matter(
    tmp_path: Path, pipeline: BuiltParser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEEDFUL_LOG_FORMAT", "xml")  # which `heedful serve` refuses
    monkeypatch.setenv("HEEDFUL_DEVICE", "none")
    build_bundle(tmp_path, pipeline, name="tiny-sst2")
    (tmp_path / "broken-sst2").mkdir()
    (tmp_path / "broken-sst2" / "card.json").write_text("{}")
    with open_folder(tmp_path / "tiny-sst2", str(pipeline.folder)) as local:
        assert local.card.name == "tiny-sst2"


def test_a_bundle_that_cannot_be_loaded_is_named(tmp_path: Path, pipeline: BuiltParser) -> None:
    build_bundle(tmp_path, pipeline, name="tiny-sst2")
    (tmp_path / "tiny-sst2" / "encoder.onnx").write_bytes(b"no graph")
    before = set(threading.enumerate())  # one of an earlier test may end meanwhile
    with (
        pytest.raises(BundleError, match=r"tiny-sst2: encoder\.onnx"),
        open_folder(tmp_path / "tiny-sst2", str(pipeline.folder)),
    ):
        pass
    assert not set(threading.enumerate()) - before


def test_a_path_without_a_bundle_is_no_served_model(tmp_path: Path) -> None:
    with (
        pytest.raises(ConfigError, match=r"tiny is no bundle's folder, it holds no card\.json"),
        open_folder(tmp_path / "tiny", None),
    ):
        pass


def test_scores_are_recorded_for_the_run_of_the_bundle_alone(tmp_path: Path, models: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / checkpoint.BEST).touch()
    record = {"config": {"encoder": {"name": "dsa"}}, "labels": ["negative", "positive"]}
    (run / checkpoint.RECORD).write_text(json.dumps(record))
    with pytest.raises(ConfigError, match="--run: tiny-sst2 is no bundle of"):
        evaluate.command(
            str(models / "tiny-sst2"), "sst2", run=run, parser=str(models / "parser"), data=tmp_path
        )
    assert not (run / checkpoint.SCORES).exists()


@pytest.fixture
def sst(tmp_path: Path) -> Path:
    """A data folder with SST's dev split: one sentence of each of the five classes."""
    trees = tmp_path / "data" / "trees"
    trees.mkdir(parents=True)
    lines = [f"({label} (2 the) ({label} {TEXTS[3]}))" for label in range(5)]
    (trees / "dev.txt").write_text("\n".join(lines))
    return trees.parent


def test_outside_a_checkout_the_parser_is_the_one_beside_the_bundle(
    models: Path, sst: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(sst)
    bundle = shutil.copytree(models, sst / "models") / "tiny-sst2"
    selftest.command([bundle])
    evaluate.command(str(bundle), "sst2", data=sst)
    said = capsys.readouterr().out
    assert "tiny-sst2: no golden vectors" in said
    assert "accuracy" in said


def test_a_score_says_which_labels_model_and_task_do_not_share(
    models: Path, sst: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def said(name: str, task: str) -> str:
        evaluate.command(str(models / name), task, parser=str(models / "parser"), data=sst)
        return capsys.readouterr().err

    assert "it has no label very negative, neutral, very positive: rows" in said(
        "tiny-sst2", "sst5"
    )
    assert "no label" not in said("tiny-sst2", "sst2")


def test_an_answer_that_the_task_lacks_is_named() -> None:
    known = ("negative", "neutral", "positive")
    task = Task("toy", "classification", ("negative", "positive"), (NONE,), NONE, NONE)
    assert label_mismatch_warnings(task, known) == [
        "toy has no label neutral: such an answer counts as wrong"
    ]


def test_a_run_keeps_no_score_of_other_labels(tmp_path: Path, models: Path, sst: Path) -> None:
    """SST-2 and SST-5 are one dataset: a score on one would replace the run's own on the other."""
    run = tmp_path / "run"
    run.mkdir()
    (run / checkpoint.BEST).touch()
    record = {"config": {"encoder": {"name": "ms-san"}}, "labels": ["negative", "positive"]}
    (run / checkpoint.RECORD).write_text(json.dumps(record))
    with pytest.raises(ConfigError, match=r"--run: .* negative, positive, sst5 very negative"):
        evaluate.command(
            str(models / "tiny-sst2"), "sst5", run=run, parser=str(models / "parser"), data=sst
        )
    assert not (run / checkpoint.SCORES).exists()

"""A bundle's folder answers in this process as a service does over HTTP."""

import json
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from heedful.cli import selftest
from heedful.runtime.errors import BundleError
from heedful.text.kinds import Kind
from heedful.training import checkpoint
from heedful.training.errors import ConfigError
from heedful.training.tasks.base import Example, Source, Task
from tests.builders import LABELS, BuiltParser, build_bundle
from tests.process import PATIENCE, Process
from tools import evaluate
from tools.local_model import open_folder, open_model
from tools.scoring import label_mismatch_warnings

NONE = Source("none", "CC0-1.0", "none", lambda _: [])
TEXTS = ["two kids wash their hands", "the dog", "a man is not good", "bad", "kids " * 30]
"""The last one is too long and is cut."""


@pytest.fixture(scope="module")
def url(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    flags = {"port": "0", "models": str(models), "threads": "1"}
    process = Process(tmp_path_factory.mktemp("log") / "log", flags, {})
    try:
        yield process.ready()
    finally:
        process.close()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("tiny-related", "relatedness"),
        ("tiny-nli", "nli"),
        ("tiny-sst2", "classification"),
        ("tiny-flat", "embedding"),
    ],
)
def test_a_folder_answers_as_the_service_does(
    models: Path, url: str, name: str, kind: Kind
) -> None:
    pairs = kind in ("relatedness", "nli", "embedding")
    examples = [
        Example((one, other) if pairs else (one,), 0) for one in TEXTS for other in TEXTS[:3]
    ]
    labels = LABELS[kind][:-1]  # the task does not know the last one: it is -1
    task = Task("toy", kind, labels, (NONE,), NONE, NONE)
    before = set(threading.enumerate())  # one of an earlier test may end meanwhile
    with open_model(str(models / name), url="", parser=str(models / "parser")) as local:
        found, vectors = local.predict(examples, task), local.embed(TEXTS)
    for thread in set(threading.enumerate()) - before:
        thread.join(timeout=PATIENCE)
        assert not thread.is_alive()
    with open_model(name, url=url, parser="none") as served:
        np.testing.assert_allclose(found, served.predict(examples, task), atol=1e-5)
        np.testing.assert_allclose(vectors, served.embed(TEXTS), atol=1e-5)


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
        open_model(str(tmp_path / "tiny"), url="", parser="none"),
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
    selftest.command([str(bundle)])
    evaluate.command(str(bundle), "sst2", data=sst)
    said = capsys.readouterr().out
    assert "tiny-sst2: no golden vectors" in said
    assert "accuracy" in said


@pytest.mark.parametrize("served", [False, True])
def test_a_score_says_which_labels_model_and_task_do_not_share(
    models: Path, url: str, sst: Path, capsys: pytest.CaptureFixture[str], served: bool
) -> None:
    def said(name: str, task: str) -> str:
        model = name if served else str(models / name)
        evaluate.command(model, task, url=url, parser=str(models / "parser"), data=sst)
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

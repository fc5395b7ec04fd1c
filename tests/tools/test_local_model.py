"""A bundle's folder answers in this process as a service does over HTTP."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

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
    texts = [(one, other) if pairs else (one,) for one in TEXTS for other in TEXTS[:3]]
    examples = [Example(one, 0) for one in texts]
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


def test_neither_neighbours_nor_the_services_settings_matter_and_a_broken_bundle_is_named(
    tmp_path: Path, pipeline: BuiltParser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEEDFUL_LOG_FORMAT", "xml")  # which `heedful serve` refuses
    monkeypatch.setenv("HEEDFUL_DEVICE", "none")
    folder = tmp_path / "tiny-sst2"
    build_bundle(tmp_path, pipeline, name=folder.name)
    (tmp_path / "broken-sst2").mkdir()
    (tmp_path / "broken-sst2" / "card.json").write_text("{}")
    with open_folder(folder, str(pipeline.folder)) as local:
        assert local.card.name == folder.name
    (folder / "encoder.onnx").write_bytes(b"no graph")
    before = set(threading.enumerate())  # one of an earlier test may end meanwhile
    wrong = pytest.raises(BundleError, match=r"tiny-sst2: encoder\.onnx")
    with wrong, open_folder(folder, str(pipeline.folder)):
        pass
    assert not set(threading.enumerate()) - before
    none = pytest.raises(ConfigError, match=r"tiny is no bundle's folder, it holds no card\.json")
    with none, open_model(str(tmp_path / "tiny"), url="", parser="none"):
        pass


@pytest.fixture
def sst(tmp_path: Path) -> Path:
    """A data folder with SST's dev split: one sentence of each of the five classes."""
    trees = tmp_path / "data" / "trees"
    trees.mkdir(parents=True)
    lines = [f"({label} (2 the) ({label} {TEXTS[3]}))" for label in range(5)]
    (trees / "dev.txt").write_text("\n".join(lines))
    return trees.parent


def test_a_score_says_which_labels_model_and_task_do_not_share(
    models: Path, sst: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def said(task: str) -> str:
        parser = str(models / "parser")
        evaluate.command(str(models / "tiny-sst2"), task, parser=parser, data=sst)
        return capsys.readouterr().err

    assert "it has no label very negative, neutral, very positive: rows" in said("sst5")
    assert "no label" not in said("sst2")
    task = Task("toy", "classification", ("negative", "positive"), (NONE,), NONE, NONE)
    warning = "toy has no label neutral: such an answer counts as wrong"
    assert label_mismatch_warnings(task, ("negative", "neutral", "positive")) == [warning]


@pytest.mark.parametrize(
    ("encoder", "task", "said"),
    [
        ("dsa", "sst2", "--run: tiny-sst2 is no bundle of"),
        ("ms-san", "sst5", r"--run: .* negative, positive, sst5 very negative"),
    ],
)
def test_a_run_keeps_the_scores_of_its_own_bundle_and_labels_alone(
    tmp_path: Path, models: Path, sst: Path, encoder: str, task: str, said: str
) -> None:
    """SST-2 and SST-5 are one dataset: a score on one would replace the run's own on the other."""
    run = tmp_path / "run"
    run.mkdir()
    (run / checkpoint.BEST).touch()
    record = {"config": {"encoder": {"name": encoder}}, "labels": ["negative", "positive"]}
    (run / checkpoint.RECORD).write_text(json.dumps(record))
    with pytest.raises(ConfigError, match=said):
        evaluate.command(
            str(models / "tiny-sst2"), task, run=run, parser=str(models / "parser"), data=sst
        )
    assert not (run / checkpoint.SCORES).exists()

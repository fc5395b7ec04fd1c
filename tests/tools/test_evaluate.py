"""A bundle's folder in this process and a service over HTTP have the scores that numpy computes from its answers."""

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from heedful.text.kinds import Kind
from heedful.training import checkpoint
from heedful.training.errors import ConfigError
from heedful.training.tasks.base import Example, Source, Task
from tests.builders import LABELS
from tests.process import Process
from tests.writing import write
from tools import evaluate
from tools.local_model import open_model
from tools.scoring import label_mismatch_warnings, measure

TEXTS = ["two kids wash their hands", "the dog", "a man is not good", "bad", "kids " * 30]
"""The last one is too long and is cut."""
PAIRS = [(a, b) for a in TEXTS for b in TEXTS]


@pytest.fixture(scope="module")
def client(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    flags = {"port": "0", "models": str(models), "threads": "1"}
    with (
        closing(Process(tmp_path_factory.mktemp("log") / "log", flags, {})) as process,
        httpx.Client(base_url=process.ready(), timeout=60) as client,
    ):
        yield client


def task(kind: Kind, labels: tuple[str, ...], examples: Sequence[Example]) -> Task:
    source = Source("toy", "CC0-1.0", "made up", lambda _: list(examples))
    return Task("toy", kind, labels, (source,), source, source)


def answers(client: httpx.Client, kind: Kind, model: str) -> Any:
    """The classes, scores or cosines that the service answers to PAIRS, to TEXTS for a classifier."""

    def ask(route: str, **body: Any) -> Any:
        return client.post(route, json={**body, "model": model, "truncate": True}).json()

    if kind == "relatedness":
        return np.array(ask("/relatedness", pairs=[{"a": a, "b": b} for a, b in PAIRS])["scores"])
    if kind == "embedding":
        rows = np.array(ask("/embed", inputs=[text for pair in PAIRS for text in pair]))
        return (rows[0::2] * rows[1::2]).sum(axis=1)
    inputs = [[text] for text in TEXTS] if kind == "classification" else PAIRS
    return np.array([LABELS[kind].index(row[0]["label"]) for row in ask("/predict", inputs=inputs)])


@pytest.mark.parametrize(
    ("model", "kind", "metrics"),
    [
        ("tiny-related", "relatedness", ["pearson", "spearman", "mse"]),
        ("tiny-nli", "nli", ["accuracy"]),
        ("tiny-sst2", "classification", ["accuracy"]),
        ("tiny-flat", "embedding", ["spearman", "pearson"]),
    ],
)
def test_the_scores_are_numpys(
    models: Path, client: httpx.Client, model: str, kind: Kind, metrics: list[str]
) -> None:
    """The task does not know the last label: such an answer is wrong."""
    found = answers(client, kind, model)
    gold = np.zeros(len(found))
    if LABELS[kind]:
        expected = {"accuracy": np.mean(found == 0)}
        assert set(found) >= {0, len(LABELS[kind]) - 1}
    else:
        gold = np.random.default_rng(0).uniform(1, 5, len(found))
        expected = {"pearson": np.corrcoef(found, gold)[0, 1], "mse": np.mean((found - gold) ** 2)}
    texts = [(text,) for text in TEXTS] if kind == "classification" else PAIRS
    examples = [Example(one, label) for one, label in zip(texts, gold, strict=True)]
    toy = task(kind, LABELS[kind][:-1], examples)
    for name, url in ((model, str(client.base_url)), (str(models / model), "")):
        with open_model(name, url=url, parser=str(models / "parser")) as opened:
            scores = measure(toy, "dev", Path(), opened)
        assert {(one.dataset, one.split, one.rows) for one in scores} == {("toy", "dev", len(gold))}
        assert [one.metric for one in scores] == metrics
        for one in scores:
            if one.metric in expected:
                assert one.value == pytest.approx(expected[one.metric], abs=1e-5)


def test_a_score_says_which_labels_are_not_shared_and_a_run_keeps_its_scores_alone(
    models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """SST-2 and SST-5 are one dataset: a score on one would replace the run's own on the other."""
    run = tmp_path / "run"
    trees = [f"({label} (2 the) ({label} {TEXTS[3]}))" for label in range(5)]
    write(tmp_path, {"trees/dev.txt": "\n".join(trees), f"run/{checkpoint.BEST}": ""})

    def evaluated(task: str, encoder: str = "") -> str:
        """What is said where the run, if there is one, is of this encoder."""
        record = {"config": {"encoder": {"name": encoder}}, "labels": ["negative", "positive"]}
        (run / checkpoint.RECORD).write_text(json.dumps(record))
        where: Any = {"parser": str(models / "parser"), "data": tmp_path}
        evaluate.command(str(models / "tiny-sst2"), task, run=run if encoder else None, **where)
        return capsys.readouterr().err

    assert "it has no label very negative, neutral, very positive: rows" in evaluated("sst5")
    assert "no label" not in evaluated("sst2")
    toy = task("classification", ("negative", "positive"), [])
    warning = "toy has no label neutral: such an answer counts as wrong"
    assert label_mismatch_warnings(toy, ("negative", "neutral", "positive")) == [warning]
    with pytest.raises(ConfigError, match="--run: tiny-sst2 is no bundle of"):
        evaluated("sst2", "dsa")
    with pytest.raises(ConfigError, match=r"--run: .* negative, positive, sst5 very negative"):
        evaluated("sst5", "ms-san")
    assert not (run / checkpoint.SCORES).exists()
    for _ in range(2):  # a score replaces that of the same split
        evaluated("sst2", "tiny")
    (score,) = json.loads((run / checkpoint.SCORES).read_text())
    assert (score["dataset"], score["split"], score["rows"]) == ("sst", "dev", 4)

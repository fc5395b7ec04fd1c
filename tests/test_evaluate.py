"""Scores of each kind of bundle, against numpy on the answers of a real service over HTTP."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest

from heedful.cli.local_model import open_folder
from heedful.text.kinds import Kind
from heedful.training.evaluate import measure
from heedful.training.tasks.base import Example, Source, Task
from tests.builders import LABELS, build_bundle, build_models
from tests.process import Process

TEXTS = ["two kids wash their hands", "the dog", "a man is not good", "bad", "kids " * 30]
PAIRS = [(a, b) for a in TEXTS for b in TEXTS]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    models = tmp_path_factory.mktemp("evaluated")
    build_bundle(models, build_models(models), name="tiny-related", kind="relatedness")
    return models


@pytest.fixture(scope="module")
def client(models: Path) -> Iterator[httpx.Client]:
    flags = {"port": "0", "models": str(models), "threads": "1"}
    process = Process(models / "log", flags, {})
    try:
        with httpx.Client(base_url=process.ready(), timeout=60) as client:
            yield client
    finally:
        process.close()


def task(kind: Kind, examples: list[Example]) -> Task:
    source = Source("toy", "CC0-1.0", "made up", lambda _: examples)
    return Task("toy", kind, LABELS[kind], (source,), source, source)


def scores(model: Path, task: Task) -> dict[str, float]:
    with open_folder(model, None) as local:
        found = measure(task, "dev", Path(), local)
    assert {(one.dataset, one.split, one.rows) for one in found} == {
        ("toy", "dev", len(task.dev.read(Path())))
    }
    return {one.metric: one.value for one in found}


def test_relatedness(models: Path, client: httpx.Client) -> None:
    gold = np.random.default_rng(0).uniform(1, 5, len(PAIRS))
    pairs = [Example(pair, score) for pair, score in zip(PAIRS, gold, strict=True)]
    found = scores(models / "tiny-related", task("relatedness", pairs))
    body = {"pairs": [{"a": a, "b": b} for a, b in PAIRS], "truncate": True}
    answered = np.array(client.post("/relatedness", json=body).json()["scores"])
    assert list(found) == ["pearson", "spearman", "mse"]
    assert found["pearson"] == pytest.approx(np.corrcoef(answered, gold)[0, 1])
    assert found["mse"] == pytest.approx(np.mean((answered - gold) ** 2))


def test_embedding(models: Path, client: httpx.Client) -> None:
    gold = np.random.default_rng(0).uniform(0, 5, len(PAIRS))
    pairs = [Example(pair, score) for pair, score in zip(PAIRS, gold, strict=True)]
    found = scores(models / "tiny-flat", task("embedding", pairs))
    body = {"inputs": TEXTS, "truncate": True, "model": "tiny-flat"}
    rows = dict(zip(TEXTS, np.array(client.post("/embed", json=body).json()), strict=True))
    cosines = [rows[a] @ rows[b] for a, b in PAIRS]
    assert list(found) == ["spearman", "pearson"]
    assert found["pearson"] == pytest.approx(np.corrcoef(cosines, gold)[0, 1], abs=1e-5)


@pytest.mark.parametrize(("kind", "model"), [("classification", "tiny-sst2"), ("nli", "tiny-nli")])
def test_accuracy(models: Path, client: httpx.Client, kind: Kind, model: str) -> None:
    """One of four examples has another label than the service answers."""
    labels = LABELS[kind]
    texts: list[tuple[str, ...]] = [
        (text,) if kind == "classification" else (text, TEXTS[1]) for text in TEXTS[:4]
    ]
    answered = []
    for one in texts:
        if kind == "nli":
            body = {"premise": one[0], "hypothesis": one[1]}
            answered.append(client.post("/nli", json=body).json()["label"])
        else:
            body = {"inputs": one[0], "model": model}
            answered.append(client.post("/classify", json=body).json()[0]["label"])
    gold = [labels.index(label) for label in answered]
    gold[0] = (gold[0] + 1) % len(labels)
    examples = [Example(one, label) for one, label in zip(texts, gold, strict=True)]
    assert scores(models / model, task(kind, examples)) == {"accuracy": 0.75}

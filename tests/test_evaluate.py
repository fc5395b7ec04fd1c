"""Scores of each kind, asked of a real service over HTTP, against numpy on its answers."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest

from heedful.text.kinds import Kind
from heedful.training.errors import TrainingError
from heedful.training.tasks.base import Example, Source, Task
from tests.builders import LABELS, build_bundle, build_models
from tests.process import Process
from tools.scoring import Server, measure

TEXTS = ["two kids wash their hands", "the dog", "a man is not good", "bad", "kids " * 30]
PAIRS = [(a, b) for a in TEXTS for b in TEXTS]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    models = tmp_path_factory.mktemp("evaluated")
    build_bundle(models, build_models(models), name="tiny-related", kind="relatedness")
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


def scores(client: httpx.Client, model: str, task: Task) -> dict[str, float]:
    found = measure(task, "dev", Path(), Server(str(client.base_url), model, client))
    assert {(one.dataset, one.split, one.rows) for one in found} == {
        ("toy", "dev", len(task.dev.read(Path())))
    }
    return {one.metric: one.value for one in found}


def test_relatedness(client: httpx.Client) -> None:
    gold = np.random.default_rng(0).uniform(1, 5, len(PAIRS))
    pairs = [Example(pair, score) for pair, score in zip(PAIRS, gold, strict=True)]
    found = scores(client, "tiny-related", task("relatedness", pairs))
    body = {"pairs": [{"a": a, "b": b} for a, b in PAIRS], "truncate": True}
    answered = np.array(client.post("/relatedness", json=body).json()["scores"])
    assert list(found) == ["pearson", "spearman", "mse"]
    assert found["pearson"] == pytest.approx(np.corrcoef(answered, gold)[0, 1])
    assert found["mse"] == pytest.approx(np.mean((answered - gold) ** 2))


def test_embedding(client: httpx.Client) -> None:
    gold = np.random.default_rng(0).uniform(0, 5, len(PAIRS))
    pairs = [Example(pair, score) for pair, score in zip(PAIRS, gold, strict=True)]
    found = scores(client, "tiny-flat", task("embedding", pairs))
    body = {"inputs": TEXTS, "truncate": True, "model": "tiny-flat"}
    rows = dict(zip(TEXTS, np.array(client.post("/embed", json=body).json()), strict=True))
    cosines = [rows[a] @ rows[b] for a, b in PAIRS]
    assert list(found) == ["spearman", "pearson"]
    assert found["pearson"] == pytest.approx(np.corrcoef(cosines, gold)[0, 1], abs=1e-5)


@pytest.mark.parametrize(("kind", "model"), [("classification", "tiny-sst2"), ("nli", "tiny-nli")])
def test_accuracy(client: httpx.Client, kind: Kind, model: str) -> None:
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
    assert scores(client, model, task(kind, examples)) == {"accuracy": 0.75}


def test_a_refusal_is_told_in_the_services_words(client: httpx.Client) -> None:
    with pytest.raises(TrainingError, match=r"/relatedness answered 422: .*tiny-related"):
        scores(client, "tiny-nli", task("relatedness", [Example(("a", "b"), 2.0)]))
    nowhere = Server("http://127.0.0.1:9", "x", client)
    with pytest.raises(TrainingError, match=r"no answer from http://127\.0\.0\.1:9"):
        measure(task("nli", [Example(("a", "b"), 0)]), "dev", Path(), nowhere)

"""Scores of each kind, asked of a real service over HTTP, against numpy on its answers."""

from collections.abc import Iterator
from contextlib import closing
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
    with (
        closing(Process(models / "log", flags, {})) as process,
        httpx.Client(base_url=process.ready(), timeout=60) as client,
    ):
        yield client


def task(kind: Kind, examples: list[Example]) -> Task:
    source = Source("toy", "CC0-1.0", "made up", lambda _: examples)
    return Task("toy", kind, LABELS[kind], (source,), source, source)


def scores(client: httpx.Client, model: str, task: Task) -> dict[str, float]:
    scores = measure(task, "dev", Path(), Server(str(client.base_url), model, client))
    rows = len(task.dev.read(Path()))
    assert {(one.dataset, one.split, one.rows) for one in scores} == {("toy", "dev", rows)}
    return {one.metric: one.value for one in scores}


def test_relatedness_and_embedding(client: httpx.Client) -> None:
    gold = np.random.default_rng(0).uniform(1, 5, len(PAIRS))
    pairs = [Example(pair, score) for pair, score in zip(PAIRS, gold, strict=True)]
    body = {"pairs": [{"a": a, "b": b} for a, b in PAIRS], "truncate": True}
    answered = np.array(client.post("/relatedness", json=body).json()["scores"])
    related = scores(client, "tiny-related", task("relatedness", pairs))
    assert list(related) == ["pearson", "spearman", "mse"]
    assert related["pearson"] == pytest.approx(np.corrcoef(answered, gold)[0, 1])
    assert related["mse"] == pytest.approx(np.mean((answered - gold) ** 2))
    texts = {"inputs": TEXTS, "truncate": True, "model": "tiny-flat"}
    rows = dict(zip(TEXTS, np.array(client.post("/embed", json=texts).json()), strict=True))
    cosines = [rows[a] @ rows[b] for a, b in PAIRS]
    embedded = scores(client, "tiny-flat", task("embedding", pairs))
    assert list(embedded) == ["spearman", "pearson"]
    assert embedded["pearson"] == pytest.approx(np.corrcoef(cosines, gold)[0, 1], abs=1e-5)


@pytest.mark.parametrize(("kind", "model"), [("classification", "tiny-sst2"), ("nli", "tiny-nli")])
def test_accuracy(client: httpx.Client, kind: Kind, model: str) -> None:
    """One of four examples has another label than the service answers."""
    labels = LABELS[kind]
    texts = [(text,) if kind == "classification" else (text, TEXTS[1]) for text in TEXTS[:4]]
    body = {"inputs": [list(text) for text in texts], "model": model}
    ranked = client.post("/predict", json=body).json()
    gold = [labels.index(row[0]["label"]) for row in ranked]
    gold[0] = (gold[0] + 1) % len(labels)
    examples = [Example(text, label) for text, label in zip(texts, gold, strict=True)]
    assert scores(client, model, task(kind, examples)) == {"accuracy": 0.75}


def test_a_refusal_is_told_in_the_services_words(client: httpx.Client) -> None:
    with pytest.raises(TrainingError, match=r"/relatedness answered 422: .*tiny-related"):
        scores(client, "tiny-nli", task("relatedness", [Example(("a", "b"), 2.0)]))
    nowhere = Server("http://127.0.0.1:9", "x", client)
    with pytest.raises(TrainingError, match=r"no answer from http://127\.0\.0\.1:9"):
        measure(task("nli", [Example(("a", "b"), 0)]), "dev", Path(), nowhere)

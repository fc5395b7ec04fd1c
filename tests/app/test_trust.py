"""`trust` with an answer: its confidence, its composed words, and how typical its input is."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import numpy as np
import pytest

from heedful.app.settings import Settings
from heedful.export.bundle_writer import write
from heedful.runtime.answers import normalise
from heedful.runtime.bundles.bundle import read
from heedful.runtime.bundles.card import ENCODER, TYPICAL
from heedful.runtime.bundles.typical import QUANTILES, Typical
from heedful.runtime.engine.graphs import encoder_feeds
from heedful.runtime.engine.session import OrtSession
from heedful.text.batch import collate
from tests.app.conftest import ask
from tests.builders import build_bundle, build_models

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`tiny-sst2` knows one typical text, "dog": distances from 0 to 1 are equally common."""
    folder = tmp_path_factory.mktemp("trust")
    parser = build_models(folder)
    build_bundle(folder, parser, name="tiny-related", kind="relatedness")
    bundle = read(folder / "tiny-sst2")
    dog = OrtSession(bundle.files[ENCODER], "cpu", 1).run(
        encoder_feeds(bundle.card, collate([bundle.vocab.sentence(["dog"], np.arange(1))]))
    )
    typical = Typical(normalise(dog), np.linspace(0, 1, QUANTILES, dtype=np.float32))
    about = {"dataset": "toy", "sentences": 10, "centroids": 1, "threshold": 0.3}
    fields = {**bundle.card.fields(), "typical": about}
    write(folder / "tiny-sst2", fields, {**bundle.files, TYPICAL: typical.to_bytes()})
    return folder


@pytest.fixture
async def client(folder: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with ask(Settings(models=folder, threads=1)) as client:
        yield client


async def test_it_comes_with_every_answer_when_asked_for(client: httpx.AsyncClient) -> None:
    texts = ["the kids wash", "the zyx", "dog"]
    plain = (await client.post("/classify", json={"inputs": texts})).json()
    found = (await client.post("/classify", json={"inputs": texts, "trust": True})).json()
    assert [one["labels"] for one in found] == plain
    trust = [one["trust"] for one in found]
    for one, labels in zip(trust, plain, strict=True):
        assert one["confidence"] == pytest.approx(labels[0]["score"])
    assert [one["composed_words"] for one in trust] == pytest.approx([0, 0.5, 0])
    vectors = np.array(
        (await client.post("/embed", json={"inputs": texts, "model": "tiny-sst2"})).json()
    )
    # Equally common distances: as far out or farther lies the share 1 - distance, the cosine.
    expected = np.clip(vectors @ vectors[2], 0, 1)
    assert [one["typical"] for one in trust] == pytest.approx(expected, abs=2e-3)
    assert all(one["typical"] == round(one["typical"], 3) for one in trust)
    one = (await client.post("/classify", json={"inputs": texts[0], "trust": True})).json()
    assert one == found[0]
    explained = (await client.post("/explain", json={"inputs": texts[0], "trust": True})).json()
    assert explained["trust"] == pytest.approx(trust[0], abs=1e-5)


async def test_of_a_pair_and_without_an_index(client: httpx.AsyncClient) -> None:
    pair = {"premise": "the kids", "hypothesis": "xyz wash"}
    judged = (await client.post("/nli", json={**pair, "trust": True})).json()
    assert judged["trust"] == {
        "confidence": pytest.approx(judged["scores"][judged["label"]]),
        "composed_words": pytest.approx(0.25),
        "typical": None,
    }
    many = (await client.post("/nli", json={"pairs": [pair, pair], "trust": True})).json()
    assert [one["trust"] for one in many["results"]] == [judged["trust"]] * 2
    assert "trust" not in (await client.post("/nli", json=pair)).json()
    pairs = [{"a": "kids", "b": "wash"}]
    related = (await client.post("/relatedness", json={"pairs": pairs, "trust": True})).json()
    assert related["trust"] == [{"confidence": None, "composed_words": 0, "typical": None}]


async def test_the_less_typical_text_of_a_pair_counts(folder: Path, tmp_path: Path) -> None:
    one, two = read(folder / "tiny-sst2"), read(folder / "tiny-nli")
    assert one.files[ENCODER] == two.files[ENCODER]  # they share the index too
    fields = {**two.card.fields(), "typical": one.card.fields()["typical"]}
    write(tmp_path / "tiny-nli", fields, {**two.files, TYPICAL: one.files[TYPICAL]})
    (tmp_path / "parser").symlink_to(folder / "parser")
    texts = ["dog", "hands"]
    async with ask(Settings(models=tmp_path, threads=1)) as client:
        vectors = np.array((await client.post("/embed", json={"inputs": texts})).json())
        expected = float(np.clip(vectors[0] @ vectors[1], 0, 1))
        assert expected < 0.9 < 1  # which is that of "dog"
        for premise, hypothesis in (texts, texts[::-1]):
            pair = {"premise": premise, "hypothesis": hypothesis}
            judged = (await client.post("/nli", json={**pair, "trust": True})).json()
            assert judged["trust"]["typical"] == pytest.approx(expected, abs=2e-3)


async def test_untypical_inputs_are_counted(client: httpx.AsyncClient) -> None:
    texts = ["the kids wash", "the dog", "dog", "bad hands", "a man is good"]
    vectors = np.array(
        (await client.post("/embed", json={"inputs": texts, "model": "tiny-sst2"})).json()
    )
    untypical = int((vectors @ vectors[2] < 0.3).sum())
    assert 0 < untypical < len(texts)
    await client.post("/classify", json={"inputs": texts})
    line = f'heedful_untypical_inputs_total{{model="tiny-sst2"}} {2 * untypical}.0'
    async with asyncio.timeout(10):
        while line not in (await client.get("/metrics")).text.splitlines():
            await asyncio.sleep(0.01)

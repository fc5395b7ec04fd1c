"""`trust` with an answer: its confidence, its composed words, and how typical its input is; and labels withheld."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful.app.schemas.explain_bodies import ExplainAnswer
from heedful.export.bundle_writer import write
from heedful.runtime.answers import normalise
from heedful.runtime.bundles.bundle import read
from heedful.runtime.bundles.card import ENCODER, TYPICAL
from heedful.runtime.bundles.typical import QUANTILES, Typical
from heedful.runtime.engine.graphs import encoder_feeds
from heedful.runtime.engine.session import OrtSession
from heedful.text.batch import collate
from tests.app.conftest import Serve
from tests.app.posting import TEXTS, Client, ask, embed, metrics
from tests.app.test_v2 import infer, tensor
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
async def trusting(serve: Serve, folder: Path) -> AsyncIterator[Client]:
    async with serve(models=folder, threads=1) as client:
        yield client


async def test_it_comes_with_every_answer_when_asked_for(trusting: Client) -> None:
    texts = ["the kids wash", "the zyx", "dog"]
    plain = await ask(trusting, "/classify", inputs=texts)
    rows = await ask(trusting, "/classify", inputs=texts, trust=True)
    assert [row["labels"] for row in rows] == plain
    trust = [row["trust"] for row in rows]
    confidence = [labels[0]["score"] for labels in plain]
    assert [entry["confidence"] for entry in trust] == pytest.approx(confidence)
    assert [entry["composed_words"] for entry in trust] == pytest.approx([0, 0.5, 0])
    vectors = await embed(trusting, texts, model="tiny-sst2")
    # Equally common distances: as far out or farther lies the share 1 - distance, the cosine.
    expected = np.clip(vectors @ vectors[2], 0, 1)
    assert [entry["typical"] for entry in trust] == pytest.approx(expected, abs=2e-3)
    assert all(entry["typical"] == round(entry["typical"], 3) for entry in trust)
    assert await ask(trusting, "/classify", inputs=texts[0], trust=True) == rows[0]
    explained = await ask(trusting, "/explain", inputs=texts[0], trust=True)
    assert explained["trust"] == pytest.approx(trust[0], abs=1e-5)


async def test_of_a_pair_and_without_an_index(trusting: Client) -> None:
    pair = {"premise": "the kids", "hypothesis": "xyz wash"}
    judged = await ask(trusting, "/nli", **pair, trust=True)
    assert judged["trust"] == {
        "confidence": pytest.approx(judged["scores"][judged["label"]]),
        "composed_words": pytest.approx(0.5),  # xyz, and the full stop that each text gets
        "typical": None,
    }
    many = await ask(trusting, "/nli", pairs=[pair, pair], trust=True)
    assert [result["trust"] for result in many["results"]] == [judged["trust"]] * 2
    assert "trust" not in await ask(trusting, "/nli", **pair)
    related = await ask(trusting, "/relatedness", pairs=[{"a": "kids", "b": "wash"}], trust=True)
    assert related["trust"] == [{"confidence": None, "composed_words": 0, "typical": None}]


async def test_the_less_typical_text_of_a_pair_counts(
    serve: Serve, folder: Path, tmp_path: Path
) -> None:
    indexed, nli = read(folder / "tiny-sst2"), read(folder / "tiny-nli")
    assert indexed.files[ENCODER] == nli.files[ENCODER]  # they share the index too
    fields = {**nli.card.fields(), "typical": indexed.card.fields()["typical"]}
    write(tmp_path / "tiny-nli", fields, {**nli.files, TYPICAL: indexed.files[TYPICAL]})
    (tmp_path / "parser").symlink_to(folder / "parser")
    texts = ["dog", "hands"]
    async with serve(models=tmp_path, threads=1) as client:
        vectors = await embed(client, texts)
        expected = float(np.clip(vectors[0] @ vectors[1], 0, 1))
        assert expected < 0.9 < 1  # which is that of "dog"
        for premise, hypothesis in (texts, texts[::-1]):
            pair = {"premise": premise, "hypothesis": hypothesis}
            judged = await ask(client, "/nli", **pair, trust=True)
            assert judged["trust"]["typical"] == pytest.approx(expected, abs=2e-3)


async def test_untypical_inputs_are_counted(trusting: Client) -> None:
    texts = ["the kids wash", "the dog", "dog", "bad hands", "a man is good"]
    vectors = await embed(trusting, texts, model="tiny-sst2")
    untypical = int((vectors @ vectors[2] < 0.3).sum())
    assert 0 < untypical < len(texts)
    await ask(trusting, "/classify", inputs=texts)
    line = f'heedful_untypical_inputs_total{{model="tiny-sst2"}} {2 * untypical}.0'
    async with asyncio.timeout(10):
        while line not in (await metrics(trusting)).splitlines():
            await asyncio.sleep(0.01)


async def test_every_route_withholds_the_same_labels(
    serve: Serve, client: Client, tmp_path: Path
) -> None:
    """The model abstains from half of TEXTS; logits are still answered."""
    best = [labels[0]["score"] for labels in await ask(client, "/classify", inputs=TEXTS)]
    build_bundle(tmp_path, build_models(tmp_path), explain=True, abstain=float(np.median(best)))
    raw: list[dict[str, Any]] = [
        {"raw_scores": True},
        {"parameters": {"function_to_apply": "none"}},
    ]
    async with serve(models=tmp_path, threads=1) as unsure:
        classified = await ask(unsure, "/classify", inputs=TEXTS)
        labels = [ranked[0]["label"] for ranked in classified]
        assert set(labels) > {None}
        for ranked in classified:
            if ranked[0]["label"] is None:
                assert ranked[0]["score"] == ranked[1]["score"]
        batch = [[text] for text in TEXTS]
        assert await ask(unsure, "/predict", inputs=batch) == classified
        for more in raw:
            logits = await ask(unsure, "/predict", inputs=batch, **more)
            assert all(row["label"] for ranked in logits for row in ranked)
        tensors = await infer(unsure, "tiny-sst2", tensor("text", TEXTS))
        assert tensors["label"].tolist() == [label or "" for label in labels]
        for text, label, ranked in zip(TEXTS, labels, classified, strict=True):
            answer = await ask(unsure, "/explain", inputs=text, evidence=True, ablation=True)
            ExplainAnswer.model_validate(answer)
            assert answer["prediction"]["label"] == label
            assert answer["evidence"]["of"] == ranked[-2]["label"]  # the most probable label
            (without,) = answer["ablation"]
            assert without["flips"] == (without["prediction"]["label"] != label)

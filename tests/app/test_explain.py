"""/explain over HTTP, trees instead of texts, and /relatedness; `trust` with an answer, and labels withheld."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
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
from tests.app.test_other_services import infer, tensor
from tests.builders import build_bundle, build_models
from tests.process import PATIENCE

pytestmark = pytest.mark.anyio
KIDS = "Two kids at a ballgame wash  their hands."
PAIRS = [
    {"a": "two kids wash their hands", "b": "the dog"},
    {"a": "bad", "b": "a man at the ballgame is not good"},
    {"a": "the dog", "b": "the dog"},
]


async def explain(client: Client, inputs: Any, **fields: Any) -> Any:
    answer = await ask(client, "/explain", inputs=inputs, **fields)
    ExplainAnswer.model_validate(answer)
    return answer


async def test_a_text_and_its_priors(client: Client) -> None:
    full = await explain(client, KIDS)
    assert (full["model"], full["priors"]) == ("tiny-sst2", {"dependency": True, "alpha": 1.5})
    assert {"similarity", "ablation"}.isdisjoint(full)
    (sentence,) = full["sentences"]
    assert sentence["text"] == KIDS
    assert [sentence["tokens"]] == await ask(client, "/tokenize", inputs=KIDS, model="tiny-sst2")
    (map_,) = sentence["maps"]
    assert (map_["name"], len(map_["weights"])) == ("products", len(sentence["tokens"]))
    assert [part["name"] for part in sentence["pooling"]] == ["sums", "mean"]
    assert [part["name"] for part in sentence["gate"]] == ["gate"]
    ranked = await ask(client, "/classify", inputs=KIDS)
    assert full["prediction"]["label"] == ranked[0]["label"]
    scores = {entry["label"]: entry["score"] for entry in ranked}
    assert full["prediction"]["scores"] == pytest.approx(scores, abs=1e-5)
    off = await explain(client, KIDS, priors={"dependency": False})
    zero = await explain(client, KIDS, priors={"alpha": 0})
    assert off["priors"] == {"dependency": False, "alpha": 1.5}
    assert zero["priors"] == {"dependency": True, "alpha": 0}
    assert off["prediction"] == zero["prediction"] != full["prediction"]


@pytest.mark.parametrize("shape", ["displacy", "conllu"])
async def test_an_answers_tree_may_be_sent_in_place_of_the_text(client: Client, shape: str) -> None:
    """The rebuilt text has one blank where there were two; all else is the same."""
    first = await explain(client, KIDS)
    tree = {shape: first["sentences"][0]["tree"][shape]}
    again = await explain(client, tree)
    assert again["prediction"] == first["prediction"]
    for key in ("maps", "pooling", "gate"):
        assert again["sentences"][0][key] == first["sentences"][0][key]
    for route in ("/embed", "/classify"):
        bodies = [{"inputs": [item, "A dog."], "model": "tiny-sst2"} for item in (KIDS, tree)]
        texts, trees = [await ask(client, route, **body) for body in bodies]
        assert trees == texts
    alone = await embed(client, tree, model="tiny-sst2")  # another batch rounds otherwise
    np.testing.assert_allclose(alone, await embed(client, KIDS, model="tiny-sst2"), atol=1e-6)
    pair = {"hypothesis": "A dog."}
    text, same = [await ask(client, "/nli", premise=one, **pair) for one in (KIDS, tree)]
    assert same == text


async def test_relatedness_is_the_expectation_of_the_head(client: Client, models: Path) -> None:
    answer = await ask(client, "/relatedness", pairs=PAIRS)
    sides: dict[str, Any] = {}
    for name, side in (("first", "a"), ("second", "b")):
        texts = [pair[side] for pair in PAIRS]
        rows = await embed(client, texts, normalize=False, model="tiny-related")
        sides[name] = rows.astype(np.float32)
    head = onnxruntime.InferenceSession(models / "tiny-related" / "head.onnx")
    (logits,) = head.run(None, sides)
    weights = np.exp(np.float64(logits))
    expected = weights @ np.arange(1, 6) / weights.sum(axis=1)
    np.testing.assert_allclose(answer["scores"], expected, atol=1e-5)
    assert 1 <= min(answer["scores"]) < max(answer["scores"]) <= 5


async def test_relatedness_is_explained(client: Client) -> None:
    (score,) = (await ask(client, "/relatedness", pairs=PAIRS[1:2]))["scores"]
    answer = await explain(client, PAIRS[1], ablation=True)
    assert answer["relatedness"] == pytest.approx(score, abs=1e-5)
    (ablation,) = answer["ablation"]
    without = (await explain(client, PAIRS[1], priors={"dependency": False}))["relatedness"]
    assert ablation["change"] == {"relatedness": pytest.approx(without - score, abs=1e-5)}
    assert {"flips", "prediction"}.isdisjoint(answer | ablation)


@pytest.fixture(scope="module")
async def trusting(
    serve: Serve, models: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Client]:
    """`tiny-sst2` and `tiny-nli` know one typical text, "dog": distances from 0 to 1 are equally common."""
    folder = shutil.copytree(models, tmp_path_factory.mktemp("trust") / "bundles")
    about = {"dataset": "toy", "sentences": 10, "centroids": 1, "threshold": 0.3}
    for name in ("tiny-sst2", "tiny-nli"):
        bundle = read(folder / name)
        feeds = encoder_feeds(bundle.card, collate([bundle.vocab.sentence(["dog"], np.arange(1))]))
        dog = normalise(OrtSession(bundle.files[ENCODER], "cpu", 1).run(feeds))
        index = Typical(dog, np.linspace(0, 1, QUANTILES, dtype=np.float32)).to_bytes()
        fields = {**bundle.card.fields(), "typical": about}
        write(folder / name, fields, {**bundle.files, TYPICAL: index})
    async with serve(models=folder, threads=1) as client:
        yield client


async def test_trust_comes_with_every_answer_when_asked_for_and_untypical_inputs_are_counted(
    trusting: Client,
) -> None:
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
    untypical = int((expected < 0.3).sum())  # of each of the three answers
    assert 0 < untypical < len(texts)
    line = f'heedful_untypical_inputs_total{{model="tiny-sst2"}} {3 * untypical}.0'
    async with asyncio.timeout(PATIENCE):
        while line not in (await metrics(trusting)).splitlines():
            await asyncio.sleep(0.01)
    explained = await ask(trusting, "/explain", inputs=texts[0], trust=True)
    assert explained["trust"] == pytest.approx(trust[0], abs=1e-5)


async def test_trust_of_a_pair_is_that_of_its_less_typical_text_and_null_without_an_index(
    trusting: Client,
) -> None:
    pair = {"premise": "dog!", "hypothesis": "xyz wash!"}  # they get no full stop
    typical, *read = await embed(trusting, ["dog", *pair.values()], model="tiny-nli")
    near, far = read @ typical
    assert far < near - 0.05
    judged = await ask(trusting, "/nli", **pair, trust=True)
    assert judged["trust"] == {
        "confidence": pytest.approx(judged["scores"][judged["label"]]),
        "composed_words": pytest.approx(3 / 5),
        "typical": pytest.approx(max(far, 0), abs=2e-3),
    }
    many = await ask(trusting, "/nli", pairs=[pair, pair], trust=True)
    assert [result["trust"] for result in many["results"]] == [judged["trust"]] * 2
    assert "trust" not in await ask(trusting, "/nli", **pair)
    related = await ask(trusting, "/relatedness", pairs=[{"a": "kids", "b": "wash"}], trust=True)
    assert related["trust"] == [{"confidence": None, "composed_words": 0, "typical": None}]


async def test_every_route_withholds_the_same_labels(
    serve: Serve, client: Client, tmp_path: Path
) -> None:
    """The model abstains from half of TEXTS; logits are still answered."""
    best = [labels[0]["score"] for labels in await ask(client, "/classify", inputs=TEXTS)]
    build_bundle(tmp_path, build_models(tmp_path), explain=True, abstain=float(np.median(best)))
    async with serve(models=tmp_path, threads=1) as unsure:
        classified = await ask(unsure, "/classify", inputs=TEXTS)
        labels = [ranked[0]["label"] for ranked in classified]
        assert set(labels) > {None}
        for ranked in classified:
            assert ranked[0]["label"] or ranked[0]["score"] == ranked[1]["score"]
        batch = [[text] for text in TEXTS]
        assert await ask(unsure, "/predict", inputs=batch) == classified
        logits = await ask(unsure, "/predict", inputs=batch, raw_scores=True)
        assert all(row["label"] for ranked in logits for row in ranked)
        tensors = await infer(unsure, "tiny-sst2", tensor("text", TEXTS))
        assert tensors["label"].tolist() == [label or "" for label in labels]
        for text, label, ranked in zip(TEXTS, labels, classified, strict=True):
            answer = await explain(unsure, text, evidence=True, ablation=True)
            assert answer["prediction"]["label"] == label
            assert answer["evidence"]["of"] == ranked[-2]["label"]  # the most probable label
            (without,) = answer["ablation"]
            assert without["flips"] == (without["prediction"]["label"] != label)

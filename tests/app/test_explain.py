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
from tests.app.test_v2 import infer, tensor
from tests.builders import build_bundle, build_models
from tests.process import PATIENCE

pytestmark = pytest.mark.anyio
KIDS = "Two kids at a ballgame wash  their hands."
PAIR = {"premise": KIDS, "hypothesis": "Kids wash."}
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


async def test_a_pair(client: Client) -> None:
    answer = await explain(client, PAIR, ablation=True)
    assert answer["model"] == "tiny-nli"
    lengths = tuple(len(sentence["tokens"]) for sentence in answer["sentences"])
    assert np.shape(answer["similarity"]) == lengths
    judged = await ask(client, "/nli", **PAIR)
    assert answer["prediction"]["label"] == judged["label"]
    assert answer["prediction"]["scores"] == pytest.approx(judged["scores"], abs=1e-5)
    (ablation,) = answer["ablation"]
    assert ablation["prior"] == "dependency"
    after = ablation["prediction"]["scores"]
    change = {label: after[label] - before for label, before in judged["scores"].items()}
    assert ablation["change"] == pytest.approx(change, abs=1e-5)
    assert ablation["flips"] == (ablation["prediction"]["label"] != judged["label"])


@pytest.mark.parametrize("shape", ["displacy", "conllu"])
async def test_an_answers_tree_may_be_sent_in_place_of_the_text(client: Client, shape: str) -> None:
    """The rebuilt text has one blank where there were two; all else is the same."""
    first = await explain(client, KIDS)
    tree = {shape: first["sentences"][0]["tree"][shape]}
    again = await explain(client, tree)
    assert again["prediction"] == first["prediction"]
    for key in ("maps", "pooling", "gate", *(["tree"] if shape == "conllu" else [])):
        # displaCy's shape does not say where blanks are.
        assert again["sentences"][0][key] == first["sentences"][0][key]
    for route in ("/embed", "/classify"):
        texts, trees = [
            await ask(client, route, inputs=[item, "A dog."], model="tiny-sst2")
            for item in (KIDS, tree)
        ]
        assert trees == texts
    alone = await embed(client, tree, model="tiny-sst2")  # another batch rounds otherwise
    np.testing.assert_allclose(alone, await embed(client, KIDS, model="tiny-sst2"), atol=1e-6)
    text, same = [
        await ask(client, "/nli", premise=item, hypothesis="A dog.") for item in (KIDS, tree)
    ]
    assert same == text


async def test_relatedness_is_the_expectation_of_the_head(client: Client, models: Path) -> None:
    answer = await ask(client, "/relatedness", pairs=PAIRS)
    assert list(answer) == ["scores"]
    sides: dict[str, Any] = {}
    for name, side in (("first", "a"), ("second", "b")):
        texts = [pair[side] for pair in PAIRS]
        rows = await ask(client, "/embed", inputs=texts, normalize=False, model="tiny-related")
        sides[name] = np.array(rows, np.float32)
    head = onnxruntime.InferenceSession(models / "tiny-related" / "head.onnx")
    (logits,) = head.run(None, sides)
    weights = np.exp(np.float64(logits))
    expected = weights @ np.arange(1, 6) / weights.sum(axis=1)
    np.testing.assert_allclose(answer["scores"], expected, atol=1e-5)
    assert 1 <= min(answer["scores"]) < max(answer["scores"]) <= 5


async def test_relatedness_is_explained(client: Client) -> None:
    pair = PAIRS[1]
    (score,) = (await ask(client, "/relatedness", pairs=[pair]))["scores"]
    answer = await explain(client, pair, ablation=True)
    assert answer["model"] == "tiny-related"
    assert answer["relatedness"] == pytest.approx(score, abs=1e-5)
    assert "prediction" not in answer
    assert [sentence["text"] for sentence in answer["sentences"]] == [pair["a"], pair["b"]]
    assert np.shape(answer["similarity"]) == (1, 8)
    (ablation,) = answer["ablation"]
    without = (await explain(client, pair, priors={"dependency": False}))["relatedness"]
    assert ablation["relatedness"] == pytest.approx(without, abs=1e-5)
    assert ablation["change"] == {"relatedness": pytest.approx(without - score, abs=1e-5)}
    assert {"flips", "prediction"}.isdisjoint(ablation)


@pytest.fixture(scope="module")
def folder(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`tiny-sst2` knows one typical text, "dog": distances from 0 to 1 are equally common."""
    folder = tmp_path_factory.mktemp("trust")
    shutil.copytree(models, folder, dirs_exist_ok=True)
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


async def test_it_comes_with_every_answer_when_asked_for_and_untypical_inputs_are_counted(
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
    assert all(entry["typical"] == round(entry["typical"], 3) for entry in trust)
    untypical = int((expected < 0.3).sum())  # of each of the three answers
    assert 0 < untypical < len(texts)
    line = f'heedful_untypical_inputs_total{{model="tiny-sst2"}} {3 * untypical}.0'
    async with asyncio.timeout(PATIENCE):
        while line not in (await metrics(trusting)).splitlines():
            await asyncio.sleep(0.01)
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
            if ranked[0]["label"] is None:
                assert ranked[0]["score"] == ranked[1]["score"]
        batch = [[text] for text in TEXTS]
        assert await ask(unsure, "/predict", inputs=batch) == classified
        logits = await ask(unsure, "/predict", inputs=batch, raw_scores=True)
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

"""/explain over HTTP, trees instead of texts, and /relatedness."""

from pathlib import Path
from typing import Any

import httpx
import numpy as np
import onnxruntime
import pytest

from heedful.app.schemas.explain_bodies import ExplainAnswer

pytestmark = pytest.mark.anyio

KIDS = "Two kids at a ballgame wash  their hands."
PAIR = {"premise": KIDS, "hypothesis": "Kids wash."}


async def explain(client: httpx.AsyncClient, inputs: Any, **fields: Any) -> Any:
    answer = await client.post("/explain", json={"inputs": inputs, **fields})
    assert answer.status_code == 200, answer.text
    ExplainAnswer.model_validate(answer.json())
    return answer.json()


async def test_a_text(client: httpx.AsyncClient) -> None:
    found = await explain(client, KIDS)
    assert found["model"] == "tiny-sst2"
    assert found["priors"] == {"dependency": True, "alpha": 1.5}
    (sentence,) = found["sentences"]
    tokens = (await client.post("/tokenize", json={"inputs": KIDS, "model": "tiny-sst2"})).json()
    assert sentence["tokens"] == tokens[0]
    assert sentence["text"] == KIDS
    length = len(tokens[0])
    (map_,) = sentence["maps"]
    assert map_["name"] == "products"
    assert len(map_["weights"]) == length
    for row in map_["weights"]:
        assert sum(row) == pytest.approx(1, abs=1e-5)
    assert [one["name"] for one in sentence["pooling"]] == ["sums", "mean"]
    assert [one["name"] for one in sentence["gate"]] == ["gate"]
    assert all(0 < weight < 1 for weight in sentence["gate"][0]["weights"])
    assert {"similarity", "ablation"}.isdisjoint(found)
    ranked = (await client.post("/classify", json={"inputs": KIDS})).json()
    assert found["prediction"]["label"] == ranked[0]["label"]
    for one in ranked:
        assert found["prediction"]["scores"][one["label"]] == pytest.approx(one["score"], abs=1e-5)


async def test_a_pair(client: httpx.AsyncClient) -> None:
    found = await explain(client, PAIR, ablation=True)
    assert found["model"] == "tiny-nli"
    first, second = (len(sentence["tokens"]) for sentence in found["sentences"])
    assert [len(found["similarity"]), len(found["similarity"][0])] == [first, second]
    judged = (await client.post("/nli", json=PAIR)).json()
    assert found["prediction"]["label"] == judged["label"]
    assert found["prediction"]["scores"] == pytest.approx(judged["scores"], abs=1e-5)
    (ablation,) = found["ablation"]
    assert ablation["prior"] == "dependency"
    for label, change in ablation["change"].items():
        after, before = ablation["prediction"]["scores"][label], judged["scores"][label]
        assert change == pytest.approx(after - before, abs=1e-5)
    assert ablation["flips"] == (ablation["prediction"]["label"] != judged["label"])


async def test_priors(client: httpx.AsyncClient) -> None:
    full = await explain(client, KIDS)
    off = await explain(client, KIDS, priors={"dependency": False})
    zero = await explain(client, KIDS, priors={"alpha": 0})
    assert off["priors"] == {"dependency": False, "alpha": 1.5}
    assert zero["priors"] == {"dependency": True, "alpha": 0}
    assert off["prediction"] == zero["prediction"] != full["prediction"]


@pytest.mark.parametrize("shape", ["displacy", "conllu"])
async def test_an_answers_tree_may_be_sent_in_the_place_of_the_text(
    client: httpx.AsyncClient, shape: str
) -> None:
    """The rebuilt text has one blank where there were two; all else is the same."""
    found = await explain(client, KIDS)
    tree = {shape: found["sentences"][0]["tree"][shape]}
    again = await explain(client, tree)
    assert again["prediction"] == found["prediction"]
    for key in ("maps", "pooling", "gate", "tree"):
        if shape == "displacy" and key == "tree":
            continue  # it does not say where blanks are
        assert again["sentences"][0][key] == found["sentences"][0][key]
    for route, key in (("/embed", "inputs"), ("/classify", "inputs")):
        texts = (
            await client.post(route, json={key: [KIDS, "A dog."], "model": "tiny-sst2"})
        ).json()
        trees = (
            await client.post(route, json={key: [tree, "A dog."], "model": "tiny-sst2"})
        ).json()
        alone = (await client.post(route, json={key: tree, "model": "tiny-sst2"})).json()
        assert trees == texts
        if route == "/embed":  # another batch rounds otherwise
            assert alone == [pytest.approx(texts[0], abs=1e-6)]
        else:
            assert alone == [
                {"label": label["label"], "score": pytest.approx(label["score"], abs=1e-6)}
                for label in texts[0]
            ]
    text = (await client.post("/nli", json={"premise": KIDS, "hypothesis": "A dog."})).json()
    same = (await client.post("/nli", json={"premise": tree, "hypothesis": "A dog."})).json()
    assert same == text


async def test_a_long_text_is_cut_with_leave(client: httpx.AsyncClient) -> None:
    text = "dog " * 17
    answer = await client.post("/explain", json={"inputs": text, "truncate": True})
    assert len(answer.json()["sentences"][0]["tokens"]) == 16
    assert answer.headers["X-Truncated"] == "1"


PAIRS = [
    {"a": "two kids wash their hands", "b": "the dog"},
    {"a": "bad", "b": "a man at the ballgame is not good"},
    {"a": "the dog", "b": "the dog"},
]


async def test_a_score_is_the_expectation_of_the_heads(
    client: httpx.AsyncClient, models: Path
) -> None:
    answer = await client.post("/relatedness", json={"pairs": PAIRS})
    assert answer.status_code == 200, answer.text
    assert list(answer.json()) == ["scores"]
    scores = answer.json()["scores"]
    head = onnxruntime.InferenceSession(models / "tiny-related" / "head.onnx")
    sides: dict[str, Any] = {}
    for name, side in (("first", "a"), ("second", "b")):
        body = {"inputs": [pair[side] for pair in PAIRS], "normalize": False}
        rows = (await client.post("/embed", json={**body, "model": "tiny-related"})).json()
        sides[name] = np.array(rows, np.float32)
    (logits,) = head.run(None, sides)
    for score, row in zip(scores, logits, strict=True):
        weights = [float(np.exp(value)) for value in row]
        expected = sum(i * weight for i, weight in enumerate(weights, 1)) / sum(weights)
        assert score == pytest.approx(expected, abs=1e-5)
        assert 1 <= score <= 5


async def test_a_pair_is_explained(client: httpx.AsyncClient) -> None:
    pair = PAIRS[1]
    (score,) = (await client.post("/relatedness", json={"pairs": [pair]})).json()["scores"]
    body = {"inputs": pair, "ablation": True}
    answer = await client.post("/explain", json=body)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    ExplainAnswer.model_validate(found)
    assert found["model"] == "tiny-related"
    assert found["relatedness"] == pytest.approx(score, abs=1e-5)
    assert "prediction" not in found
    assert [one["text"] for one in found["sentences"]] == [pair["a"], pair["b"]]
    assert [len(found["similarity"]), len(found["similarity"][0])] == [1, 8]
    (ablation,) = found["ablation"]
    off = {"inputs": pair, "priors": {"dependency": False}}
    without = (await client.post("/explain", json=off)).json()["relatedness"]
    assert ablation["relatedness"] == pytest.approx(without, abs=1e-5)
    assert ablation["change"] == {"relatedness": pytest.approx(without - score, abs=1e-5)}
    assert {"flips", "prediction"}.isdisjoint(ablation)

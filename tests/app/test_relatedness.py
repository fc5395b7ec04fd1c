"""POST /relatedness on a tiny bundle of the kind."""

from pathlib import Path
from typing import Any

import httpx
import numpy as np
import onnxruntime
import pytest

from heedful.app.schemas.explain_bodies import ExplainAnswer

pytestmark = pytest.mark.anyio

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

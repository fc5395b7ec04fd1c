"""POST /relatedness on a tiny bundle of the kind."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import onnxruntime
import pytest

from heedful.app.schemas.explain_bodies import ExplainAnswer
from tests.app.conftest import Serve
from tests.builders import build_bundle, build_parser

pytestmark = pytest.mark.anyio

PAIRS = [
    {"a": "two kids wash their hands", "b": "the dog"},
    {"a": "bad", "b": "a man at the ballgame is not good"},
    {"a": "the dog", "b": "the dog"},
]


@pytest.fixture(scope="module")
def related(tmp_path_factory: pytest.TempPathFactory) -> Path:
    models = tmp_path_factory.mktemp("related")
    parser = build_parser(models / "parser")
    build_bundle(models, parser, name="tiny-related", kind="relatedness", explain=True)
    build_bundle(models, parser, name="tiny-sst2")
    return models


@pytest.fixture(scope="module")
async def client(serve: Serve, related: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with serve(models=related, max_batch_inputs=4) as client:
        yield client


async def test_a_score_is_the_expectation_of_the_heads(
    client: httpx.AsyncClient, related: Path
) -> None:
    answer = await client.post("/relatedness", json={"pairs": PAIRS})
    assert answer.status_code == 200, answer.text
    assert list(answer.json()) == ["scores"]
    scores = answer.json()["scores"]
    head = onnxruntime.InferenceSession(related / "tiny-related" / "head.onnx")
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


async def test_a_long_text_is_refused_or_cut(client: httpx.AsyncClient) -> None:
    pairs = [PAIRS[0], {"a": "the dog", "b": "kids " * 40}]
    refused = await client.post("/relatedness", json={"pairs": pairs})
    assert refused.status_code == 422
    assert refused.json()["error"]["param"] == "pairs[1].b"
    cut = await client.post("/relatedness", json={"pairs": pairs, "truncate": True})
    assert len(cut.json()["scores"]) == 2
    assert cut.headers["X-Truncated"] == "1"


async def test_the_other_routes_do_not_take_the_model(client: httpx.AsyncClient) -> None:
    pair = {"premise": "x", "hypothesis": "y", "model": "tiny-related"}
    assert (await client.post("/nli", json=pair)).status_code == 422
    body = {"inputs": "x", "model": "tiny-related"}
    assert (await client.post("/classify", json=body)).status_code == 422


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


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"inputs": {"a": "x"}}, "inputs.b"),
        ({"inputs": {"a": "x", "b": " "}}, "inputs.b"),
        ({"inputs": {"a": "x", "b": {"conllu": ""}}}, "inputs.b.conllu"),
        ({"inputs": {"a": "x", "b": "y", "premise": "z", "hypothesis": "w"}}, "inputs.a"),
        ({"inputs": {"a": "x", "b": "y"}, "model": "tiny-sst2"}, "model"),
        ({"inputs": {"premise": "x", "hypothesis": "y"}, "model": "tiny-related"}, "model"),
    ],
)
async def test_an_explanations_pair_that_does_not_fit_is_refused(
    client: httpx.AsyncClient, body: dict[str, Any], param: str
) -> None:
    answer = await client.post("/explain", json=body)
    assert (answer.status_code, answer.json()["error"]["param"]) == (422, param)

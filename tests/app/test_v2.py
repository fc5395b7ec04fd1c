"""The Open Inference Protocol V2 by hand. docs/clients.md says what its clients made of it."""

from typing import Any

import httpx
import numpy as np
import pytest

from tests.app.conftest import KEY, Serve
from tests.app.test_answers import TEXTS, embed
from tests.app.test_errors import check
from tests.app.test_tei import post

pytestmark = pytest.mark.anyio


def tensor(name: str, data: list[Any]) -> dict[str, Any]:
    return {"name": name, "shape": [len(data)], "datatype": "BYTES", "data": data}


async def infer(
    client: httpx.AsyncClient, model: str, *inputs: dict[str, Any], **more: Any
) -> dict[str, Any]:
    answer = await post(client, f"/v2/models/{model}/infer", inputs=list(inputs), **more)
    assert answer["model_name"] == model
    for output in answer["outputs"]:
        assert int(np.prod(output["shape"])) == len(output["data"])
    return {one["name"]: np.reshape(one["data"], one["shape"]) for one in answer["outputs"]}


async def test_an_embedding_model(client: httpx.AsyncClient) -> None:
    metadata = (await client.get("/v2/models/tiny-flat")).json()
    assert metadata["inputs"] == [{"name": "text", "datatype": "BYTES", "shape": [-1]}]
    assert metadata["outputs"] == [{"name": "embedding", "datatype": "FP32", "shape": [-1, 8]}]
    found = await infer(client, "tiny-flat", tensor("text", TEXTS), id="mine")
    assert list(found) == ["embedding"]
    np.testing.assert_allclose(found["embedding"], await embed(client, TEXTS), atol=1e-6)
    nested = await infer(client, "tiny-flat", tensor("text", [[text] for text in TEXTS]))
    np.testing.assert_array_equal(nested["embedding"], found["embedding"])
    body = {"inputs": [tensor("text", TEXTS)], "id": "mine"}
    assert (await client.post("/v2/models/tiny-flat/infer", json=body)).json()["id"] == "mine"


async def test_a_classifier(client: httpx.AsyncClient) -> None:
    metadata = (await client.get("/v2/models/tiny-sst2")).json()
    assert [one["name"] for one in metadata["outputs"]] == ["probabilities", "label"]
    found = await infer(client, "tiny-sst2", tensor("text", TEXTS))
    classified = await post(client, "/classify", inputs=TEXTS, model="tiny-sst2")
    assert found["label"].tolist() == [ranked[0]["label"] for ranked in classified]
    np.testing.assert_allclose(
        found["probabilities"].max(axis=1), [ranked[0]["score"] for ranked in classified], atol=1e-6
    )
    label = [{"name": "label"}]
    only = await infer(client, "tiny-sst2", tensor("text", TEXTS), outputs=label)
    assert list(only) == ["label"]
    every = await infer(client, "tiny-sst2", tensor("text", TEXTS), outputs=[])
    assert list(every) == list(found)


async def test_models_of_pairs(client: httpx.AsyncClient) -> None:
    premises, hypotheses = TEXTS[:2], TEXTS[2:4]
    found = await infer(
        client, "tiny-nli", tensor("hypothesis", hypotheses), tensor("premise", premises)
    )
    pairs = [
        {"premise": one, "hypothesis": other}
        for one, other in zip(premises, hypotheses, strict=True)
    ]
    judged = (await post(client, "/nli", pairs=pairs, model="tiny-nli"))["results"]
    assert found["label"].tolist() == [one["label"] for one in judged]
    related = await infer(client, "tiny-related", tensor("a", premises), tensor("b", hypotheses))
    ab = [{"a": one, "b": other} for one, other in zip(premises, hypotheses, strict=True)]
    scores = (await post(client, "/relatedness", pairs=ab))["scores"]
    np.testing.assert_allclose(related["score"], scores, atol=1e-6)


async def test_tensors_in_bytes_are_refused(client: httpx.AsyncClient) -> None:
    """Triton's binary extension; who asks for outputs in bytes gets JSON, which its clients read too."""
    body = {"inputs": [tensor("text", TEXTS)], "parameters": {"binary_data_output": True}}
    path = "/v2/models/tiny-flat/infer"
    refused = await client.post(path, json=body, headers={"Inference-Header-Content-Length": "9"})
    assert "send them in it as data" in check(refused, 400, "wrong_content_type")["message"]
    answer = await client.post(path, json=body)
    assert answer.headers["X-Ignored-Fields"] == "parameters.binary_data_output"
    assert len(answer.json()["outputs"][0]["data"]) == 8 * len(TEXTS)


async def test_long_texts_as_on_embed(client: httpx.AsyncClient) -> None:
    text = [tensor("text", ["kids " * 40])]
    path = "/v2/models/tiny-flat/infer"
    check(await client.post(path, json={"inputs": text}), 422, "input_too_long", "inputs.text[0]")
    for parameters, header in (
        ({"truncate": True}, "X-Truncated"),
        ({"long": "mean"}, "X-Windows"),
    ):
        answer = await client.post(path, json={"inputs": text, "parameters": parameters})
        assert answer.headers[header] == "1"


async def test_versions(client: httpx.AsyncClient) -> None:
    [version] = (await client.get("/v2/models/tiny-nli")).json()["versions"]
    texts = [tensor("premise", TEXTS[:2]), tensor("hypothesis", TEXTS[2:4])]
    named, other = (f"/v2/models/tiny-nli/versions/{one}" for one in (version, "1"))
    for path in ("", "/ready"):
        found = await client.get(named + path)
        assert found.json() == (await client.get(f"/v2/models/tiny-nli{path}")).json()
        check(await client.get(other + path), 404, "model_not_found", "version")
    found = await client.post(f"{named}/infer", json={"inputs": texts})
    assert found.json()["model_version"] == version
    same = await client.post("/v2/models/tiny-nli/infer", json={"inputs": texts})
    assert found.json() == same.json()
    refused = await client.post(f"{other}/infer", json={"inputs": texts})
    assert version in check(refused, 404, "model_not_found", "version")["message"]


async def test_readiness(serve: Serve, client: httpx.AsyncClient) -> None:
    assert (await client.get("/v2")).json()["name"] == "heedful"
    assert (await client.get("/v2/health/ready")).json() == {"ready": True}
    ready = (await client.get("/v2/models/tiny-nli/ready")).json()
    assert ready == {"name": "tiny-nli", "ready": True}
    check(await client.get("/v2/models/bert/ready"), 404, "model_not_found", "model")
    check(await client.get("/v2/models/bert"), 404, "model_not_found", "model")
    check(await client.post("/v2/models/bert", json={}), 405, "method_not_allowed")
    check(await client.post("/v2/repository/index", json={}), 404, "route_not_found")
    async with serve(start=False, api_key=KEY) as idle:  # a probe needs no key
        assert (await idle.get("/v2/health/live")).json() == {"live": True}
        check(await idle.get("/v2/health/ready"), 503, "not_ready")
        check(await idle.get("/v2/models/tiny-nli"), 401, "unauthorized")

"""The Open Inference Protocol V2 by hand. docs/clients.md says what its clients made of it."""

from typing import Any

import numpy as np
import pytest

from tests.app.conftest import KEY, Serve
from tests.app.posting import TEXTS, Client, ask, check, embed, post

pytestmark = pytest.mark.anyio
FLAT, NLI = "/v2/models/tiny-flat", "/v2/models/tiny-nli"


def tensor(name: str, data: list[Any]) -> dict[str, Any]:
    return {"name": name, "shape": [len(data)], "datatype": "BYTES", "data": data}


async def infer(client: Client, model: str, *inputs: dict[str, Any], **more: Any) -> dict[str, Any]:
    answer = await ask(client, f"/v2/models/{model}/infer", inputs=list(inputs), **more)
    assert (answer["model_name"], answer.get("id")) == (model, more.get("id"))
    for output in answer["outputs"]:
        assert int(np.prod(output["shape"])) == len(output["data"])
    outputs = answer["outputs"]
    return {tensor["name"]: np.reshape(tensor["data"], tensor["shape"]) for tensor in outputs}


async def test_an_embedding_model(client: Client) -> None:
    metadata = (await client.get(FLAT)).json()
    assert metadata["inputs"] == [{"name": "text", "datatype": "BYTES", "shape": [-1]}]
    assert metadata["outputs"] == [{"name": "embedding", "datatype": "FP32", "shape": [-1, 8]}]
    outputs = await infer(client, "tiny-flat", tensor("text", TEXTS), id="mine")
    assert list(outputs) == ["embedding"]
    np.testing.assert_allclose(outputs["embedding"], await embed(client, TEXTS), atol=1e-6)
    nested = await infer(client, "tiny-flat", tensor("text", [[text] for text in TEXTS]))
    np.testing.assert_array_equal(nested["embedding"], outputs["embedding"])


async def test_a_classifier(client: Client) -> None:
    metadata = (await client.get("/v2/models/tiny-sst2")).json()
    assert [output["name"] for output in metadata["outputs"]] == ["probabilities", "label"]
    texts = tensor("text", TEXTS)
    outputs = await infer(client, "tiny-sst2", texts)
    best = [ranked[0] for ranked in await ask(client, "/classify", inputs=TEXTS)]
    assert outputs["label"].tolist() == [row["label"] for row in best]
    scores = [row["score"] for row in best]
    np.testing.assert_allclose(outputs["probabilities"].max(axis=1), scores, atol=1e-6)
    assert list(await infer(client, "tiny-sst2", texts, outputs=[{"name": "label"}])) == ["label"]
    assert list(await infer(client, "tiny-sst2", texts, outputs=[])) == list(outputs)


async def test_models_of_pairs(client: Client) -> None:
    firsts, seconds = TEXTS[:2], TEXTS[2:4]
    sides = tensor("hypothesis", seconds), tensor("premise", firsts)
    outputs = await infer(client, "tiny-nli", *sides)
    pairs = [{"premise": a, "hypothesis": b} for a, b in zip(firsts, seconds, strict=True)]
    judged = (await ask(client, "/nli", pairs=pairs))["results"]
    assert outputs["label"].tolist() == [result["label"] for result in judged]
    related = await infer(client, "tiny-related", tensor("a", firsts), tensor("b", seconds))
    pairs = [{"a": a, "b": b} for a, b in zip(firsts, seconds, strict=True)]
    scores = (await ask(client, "/relatedness", pairs=pairs))["scores"]
    np.testing.assert_allclose(related["score"], scores, atol=1e-6)


async def test_tensors_in_bytes_are_refused(client: Client) -> None:
    """Triton's binary extension; who asks for outputs in bytes gets JSON, which its clients read too."""
    body = {"inputs": [tensor("text", TEXTS)], "parameters": {"binary_data_output": True}}
    headers = {"Inference-Header-Content-Length": "9"}
    refused = await client.post(f"{FLAT}/infer", json=body, headers=headers)
    assert "send them in the JSON as data" in check(refused, 400, "wrong_content_type")["message"]
    answer = await post(client, f"{FLAT}/infer", **body)
    assert answer.headers["X-Ignored-Fields"] == "parameters.binary_data_output"
    assert len(answer.json()["outputs"][0]["data"]) == 8 * len(TEXTS)


async def test_long_texts_as_on_embed(client: Client) -> None:
    body = {"inputs": [tensor("text", ["kids " * 40])]}
    for field, value, header in (("truncate", True, "X-Truncated"), ("long", "mean", "X-Windows")):
        answer = await post(client, f"{FLAT}/infer", **body, parameters={field: value})
        assert answer.headers[header] == "1"


async def test_versions(client: Client) -> None:
    [version] = (await client.get(NLI)).json()["versions"]
    named, other = (f"{NLI}/versions/{number}" for number in (version, "1"))
    for path in ("", "/ready"):
        assert (await client.get(named + path)).json() == (await client.get(NLI + path)).json()
        check(await client.get(other + path), 404, "model_not_found", "version")
    body = {"inputs": [tensor("premise", TEXTS[:2]), tensor("hypothesis", TEXTS[2:4])]}
    answer = await ask(client, f"{named}/infer", **body)
    assert answer["model_version"] == version
    assert answer == await ask(client, f"{NLI}/infer", **body)
    refused = await client.post(f"{other}/infer", json=body)
    assert version in check(refused, 404, "model_not_found", "version")["message"]


async def test_readiness(serve: Serve, client: Client) -> None:
    """tests/app/test_statuses.py has the refusals of the routes that are documented."""
    assert (await client.get("/v2")).json()["name"] == "heedful"
    assert (await client.get("/v2/health/ready")).json() == {"ready": True}
    assert (await client.get(f"{NLI}/ready")).json() == {"name": "tiny-nli", "ready": True}
    check(await client.post("/v2/models/bert", json={}), 405, "method_not_allowed")
    check(await client.post("/v2/repository/index", json={}), 404, "route_not_found")
    async with serve(start=False, api_key=KEY) as idle:  # a probe needs no key
        assert (await idle.get("/v2/health/live")).json() == {"live": True}
        check(await idle.get("/v2/health/ready"), 503, "not_ready")

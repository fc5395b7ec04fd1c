"""/v1/embeddings by hand. tests/app/test_clients.py asks it with OpenAI's own client."""

import base64
from typing import Any

import httpx
import numpy as np
import pytest

from tests.app.test_answers import TEXTS, embed

pytestmark = pytest.mark.anyio


async def ask(client: httpx.AsyncClient, **body: Any) -> Any:
    answer = await client.post("/v1/embeddings", json={"model": "tiny-flat", **body})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_the_list_is_openais(client: httpx.AsyncClient) -> None:
    answer = await ask(client, input=TEXTS)
    assert list(answer) == ["object", "data", "model", "usage"]
    assert (answer["object"], answer["model"]) == ("list", "tiny-flat")
    for index, entry in enumerate(answer["data"]):
        assert list(entry) == ["object", "index", "embedding"]
        assert (entry["object"], entry["index"]) == ("embedding", index)
    rows = np.array([entry["embedding"] for entry in answer["data"]])
    np.testing.assert_array_equal(rows, await embed(client, TEXTS, model="tiny-flat"))
    alone = await ask(client, input=TEXTS[0])
    np.testing.assert_allclose([alone["data"][0]["embedding"]], rows[:1], atol=1e-5)


async def test_base64_holds_the_bits_of_the_floats(client: httpx.AsyncClient) -> None:
    floats = await ask(client, input=TEXTS, encoding_format="float", user="someone")
    coded = await ask(client, input=TEXTS, encoding_format="base64")
    for one, other in zip(floats["data"], coded["data"], strict=True):
        row = np.array(one["embedding"], dtype="<f4")
        assert base64.b64decode(other["embedding"], validate=True) == row.tobytes()


async def test_the_format_null_is_float(client: httpx.AsyncClient) -> None:
    """LiteLLM sends it from 1.80.11 on, as OpenAI takes it."""
    assert await ask(client, input=TEXTS, encoding_format=None) == await ask(client, input=TEXTS)


async def test_usage_counts_the_tokens(client: httpx.AsyncClient) -> None:
    tokens = (await client.post("/tokenize", json={"inputs": TEXTS, "model": "tiny-flat"})).json()
    count = sum(map(len, tokens))
    assert (await ask(client, input=TEXTS))["usage"] == {
        "prompt_tokens": count,
        "total_tokens": count,
    }


async def test_dimensions_are_the_first_ones(client: httpx.AsyncClient) -> None:
    for dimensions in (1, 7, 8):
        row = (await ask(client, input="kids", dimensions=dimensions))["data"][0]["embedding"]
        assert len(row) == dimensions
        assert np.linalg.norm(row) == pytest.approx(1, abs=1e-6)

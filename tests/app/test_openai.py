"""/v1/embeddings by hand. tests/app/test_clients.py asks it with OpenAI's own client."""

from typing import Any

import httpx
import numpy as np
import pytest

from tests.app.test_answers import TEXTS

pytestmark = pytest.mark.anyio


async def ask(client: httpx.AsyncClient, **body: Any) -> Any:
    answer = await client.post("/v1/embeddings", json={"model": "tiny-flat", **body})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_the_format_null_is_float(client: httpx.AsyncClient) -> None:
    """LiteLLM sends it from 1.80.11 on, as OpenAI takes it."""
    assert await ask(client, input=TEXTS, encoding_format=None) == await ask(client, input=TEXTS)


async def test_dimensions_are_the_first_ones(client: httpx.AsyncClient) -> None:
    for dimensions in (1, 7, 8):
        row = (await ask(client, input="kids", dimensions=dimensions))["data"][0]["embedding"]
        assert len(row) == dimensions
        assert np.linalg.norm(row) == pytest.approx(1, abs=1e-6)

"""/v1/embeddings by hand; tests/app/test_clients.py asks it with OpenAI's own client. Token ids in place of texts are
decoded by tiktoken: here with an encoding whose ids are bytes."""

from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest

from heedful.app.routes.compat import token_ids
from tests.app.test_answers import TEXTS, embed
from tests.app.test_errors import check

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


tiktoken = pytest.importorskip("tiktoken")


@pytest.fixture
def _bytes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """cl100k_base itself would have to be fetched; `make clients` tries it."""
    ranks = {bytes([value]): value for value in range(256)}
    small = tiktoken.Encoding(
        "cl100k_base", pat_str=r"\S+|\s+", mergeable_ranks=ranks, special_tokens={}
    )
    monkeypatch.setitem(tiktoken.registry.ENCODINGS, "cl100k_base", small)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "unused")
    token_ids._encoding.cache_clear()
    yield
    token_ids._encoding.cache_clear()


@pytest.mark.usefixtures("_bytes")
async def test_ids_are_embedded_as_their_texts(client: httpx.AsyncClient) -> None:
    rows = await embed(client, TEXTS, model="tiny-flat")
    ids = [list(text.encode()) for text in TEXTS]
    for given, expected in ((ids, rows), (ids[0], rows[:1])):
        answer = await client.post("/v1/embeddings", json={"input": given, "model": "tiny-flat"})
        assert answer.status_code == 200, answer.text
        found = [row["embedding"] for row in answer.json()["data"]]
        np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.usefixtures("_bytes")
@pytest.mark.parametrize(
    ("ids", "code", "param"),
    [
        ([[107], [300]], "invalid_input", "input[1]"),
        ([300], "invalid_input", "input"),
        ([-1], "invalid_input", "input"),
        ([2**40], "invalid_input", "input"),
        ([107, "kids"], "invalid_type", "input[1]"),
        ([[107], "kids"], "invalid_type", "input[1]"),
        ([[]], "invalid_input", "input[0]"),
    ],
)
async def test_what_is_no_id_is_refused_by_its_place(
    client: httpx.AsyncClient, ids: object, code: str, param: str
) -> None:
    answer = await client.post("/v1/embeddings", json={"input": ids, "model": "tiny-flat"})
    check(answer, 422, code, param)


async def test_without_the_encodings_file_they_are_refused_with_the_remedy(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    token_ids._encoding.cache_clear()
    for ids in ([9906, 1917], [[9906], [1917]]):
        answer = await client.post("/v1/embeddings", json={"input": ids, "model": "tiny-flat"})
        message = check(answer, 422, "unsupported", "input")["message"]
        assert "check_embedding_ctx_length" in message
        assert "TIKTOKEN_CACHE_DIR" in message

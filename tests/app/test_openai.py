"""/v1/embeddings by hand; tests/app/test_clients.py asks it with OpenAI's own client. Token ids in place of texts are
decoded by tiktoken: here with an encoding whose ids are bytes."""

import numpy as np
import pytest

from heedful.app.routes.compat import token_ids
from tests.app.posting import TEXTS, Client, ask, check, embed

pytestmark = pytest.mark.anyio
tiktoken = pytest.importorskip("tiktoken")


async def test_the_format_null_is_float_and_dimensions_are_the_first_ones(client: Client) -> None:
    """LiteLLM sends null from 1.80.11 on, as OpenAI takes it."""
    body = {"model": "tiny-flat", "input": TEXTS}
    plain = await ask(client, "/v1/embeddings", **body)
    assert await ask(client, "/v1/embeddings", **body, encoding_format=None) == plain
    for dimensions in (1, 7, 8):
        rows = (await ask(client, "/v1/embeddings", **body, dimensions=dimensions))["data"]
        expected = await embed(client, TEXTS, model="tiny-flat", dimensions=dimensions)
        np.testing.assert_allclose([row["embedding"] for row in rows], expected, atol=1e-6)


@pytest.fixture
def _encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    """An encoding of bytes, since cl100k_base would have to be fetched; `make clients` tests that."""
    ranks = {bytes([value]): value for value in range(256)}
    small = tiktoken.Encoding(
        "cl100k_base", pat_str=r"\S+|\s+", mergeable_ranks=ranks, special_tokens={}
    )
    monkeypatch.setitem(tiktoken.registry.ENCODINGS, "cl100k_base", small)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "unused")
    token_ids._encoding.cache_clear()


@pytest.mark.usefixtures("_encoding")
async def test_ids_are_embedded_as_their_texts(client: Client) -> None:
    rows = await embed(client, TEXTS, model="tiny-flat")
    ids = [list(text.encode()) for text in TEXTS]
    for value, expected in ((ids, rows), (ids[0], rows[:1])):
        data = (await ask(client, "/v1/embeddings", input=value, model="tiny-flat"))["data"]
        np.testing.assert_allclose([row["embedding"] for row in data], expected, atol=1e-6)


@pytest.mark.usefixtures("_encoding")
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
    client: Client, ids: object, code: str, param: str
) -> None:
    answer = await client.post("/v1/embeddings", json={"input": ids, "model": "tiny-flat"})
    check(answer, 422, code, param)


@pytest.mark.parametrize("ids", [[9906, 1917], [[9906], [1917]]])
async def test_without_the_encodings_file_they_are_refused_with_the_remedy(
    client: Client, monkeypatch: pytest.MonkeyPatch, ids: object
) -> None:
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    token_ids._encoding.cache_clear()
    answer = await client.post("/v1/embeddings", json={"input": ids, "model": "tiny-flat"})
    message = check(answer, 422, "unsupported", "input")["message"]
    assert "check_embedding_ctx_length" in message
    assert "TIKTOKEN_CACHE_DIR" in message

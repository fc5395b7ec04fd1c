"""OpenAI's and Cohere's routes: their own clients, unmodified, against a real process; and what those do not send.

Token ids in place of texts are decoded by tiktoken: here with an encoding whose ids are bytes.
"""

from collections.abc import Iterator
from typing import Any

import cohere
import httpx
import numpy as np
import openai
import pytest
import tiktoken

from heedful.app.routes.compat import token_ids
from tests.app.conftest import KEY
from tests.app.posting import Client, ask, bearer, check, embed
from tests.process import PATIENCE, Process

TEXTS = ["two kids wash their hands", "the dog is not good", "a man"]


@pytest.fixture(scope="module")
def official(process: Process) -> Iterator[openai.OpenAI]:
    base = f"{process.url()}/v1"
    with openai.OpenAI(base_url=base, api_key=KEY, max_retries=0, timeout=PATIENCE) as client:
        yield client


def test_openai_reads_floats_and_base64_alike(official: openai.OpenAI) -> None:
    """The client requests base64 by default, and decodes it."""
    coded = official.embeddings.create(input=TEXTS, model="tiny-flat")
    floats = official.embeddings.create(input=TEXTS, model="tiny-flat", encoding_format="float")
    for entry, other in zip(coded.data, floats.data, strict=True):
        vectors = np.array([entry.embedding, other.embedding], np.float32)
        np.testing.assert_array_equal(*vectors)
    assert [entry.index for entry in coded.data] == [0, 1, 2]
    assert coded.model == "tiny-flat"
    assert coded.usage.prompt_tokens == coded.usage.total_tokens == 12
    short = official.embeddings.create(input=TEXTS[0], model="tiny-nli", dimensions=3, user="me")
    assert [len(entry.embedding) for entry in short.data] == [3]
    assert {model.id for model in official.models.list()} >= {"tiny-flat", "tiny-nli"}


def test_openai_raises_its_own_errors(official: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="tiny-flat") as unknown:
        official.embeddings.create(input="a", model="text-embedding-3-small")
    error = unknown.value
    assert (error.code, error.param, error.type) == (
        *("model_not_found", "model", "invalid_request_error"),
    )
    with pytest.raises(openai.UnprocessableEntityError) as wrong:
        official.embeddings.create(input=["a", ""], model="tiny-flat")
    assert wrong.value.param == "input[1]"
    with pytest.raises(openai.UnprocessableEntityError, match="token ids"):
        official.embeddings.create(input=[1, 2], model="tiny-flat")
    with pytest.raises(openai.AuthenticationError) as shut:
        official.with_options(api_key="another").embeddings.create(input="a", model="tiny-flat")
    assert shut.value.type == "authentication_error"
    assert shut.value.request_id == shut.value.response.headers["X-Request-Id"]


def test_cohere_embeds_in_several_types(process: Process) -> None:
    """A long text has the mean of its windows unless the client wants it cut."""
    url, long = process.url(), "the dog is not good " * 9
    texts, types = [*TEXTS, long], ["float", "ubinary"]
    options: dict[str, Any] = {"model": "tiny-flat", "input_type": "search_document"}
    with cohere.ClientV2(KEY, base_url=url, timeout=PATIENCE) as client:
        answer = client.embed(texts=texts, embedding_types=types, output_dimension=8, **options)
        cut = client.embed(texts=[long], truncate="END", **options)
    floats, bits = np.array(answer.embeddings.float_), np.array(answer.embeddings.ubinary)
    np.testing.assert_array_equal(np.unpackbits(bits.astype(np.uint8), axis=1), floats > 0)
    assert answer.texts == texts
    assert answer.meta is not None
    assert answer.meta.billed_units is not None
    body = {"inputs": texts, "model": "tiny-flat", "dimensions": 8, "long": "mean"}
    rows = httpx.post(f"{url}/embed", json=body, headers=bearer(KEY), timeout=PATIENCE).json()
    np.testing.assert_allclose(floats, rows, atol=1e-5)
    assert not np.allclose(floats[-1], np.array(cut.embeddings.float_)[0, :8], atol=1e-3)


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


@pytest.mark.anyio
@pytest.mark.usefixtures("_encoding")
async def test_ids_are_embedded_as_their_texts(client: Client) -> None:
    rows = await embed(client, TEXTS, model="tiny-flat")
    ids = [list(text.encode()) for text in TEXTS]
    for value, expected in ((ids, rows), (ids[0], rows[:1])):
        data = (await ask(client, "/v1/embeddings", input=value, model="tiny-flat"))["data"]
        np.testing.assert_allclose([row["embedding"] for row in data], expected, atol=1e-6)


@pytest.mark.anyio
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


@pytest.mark.anyio
async def test_without_the_encodings_file_they_are_refused_with_the_remedy(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    token_ids._encoding.cache_clear()
    for ids in ([9906, 1917], [[9906], [1917]]):
        answer = await client.post("/v1/embeddings", json={"input": ids, "model": "tiny-flat"})
        message = check(answer, 422, "unsupported", "input")["message"]
        assert "check_embedding_ctx_length=False" in message
        assert "TIKTOKEN_CACHE_DIR" in message


@pytest.mark.anyio
async def test_litellm_sends_null_for_the_format(client: Client) -> None:
    """From 1.80.11 on, as OpenAI takes it."""
    body = {"model": "tiny-flat", "input": TEXTS}
    plain = await ask(client, "/v1/embeddings", **body)
    assert await ask(client, "/v1/embeddings", **body, encoding_format=None) == plain

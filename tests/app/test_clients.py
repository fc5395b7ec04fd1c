"""Clients that were written for other services, unmodified, against a real process."""

import http.client
import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import cohere
import httpx
import numpy as np
import openai
import pytest

from tests.app.conftest import KEY
from tests.process import PATIENCE, Process

TEXTS = ["two kids wash their hands", "the dog is not good", "a man"]


@pytest.fixture(scope="module")
def base(process: Process) -> str:
    return f"{process.url()}/v1"


@pytest.fixture(scope="module")
def client(base: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=base, api_key=KEY, max_retries=0, timeout=PATIENCE) as client:
        yield client


def embeddings(answer: openai.types.CreateEmbeddingResponse) -> np.ndarray[Any, Any]:
    return np.array([entry.embedding for entry in answer.data], dtype=np.float32)


def test_openai_reads_floats_and_base64_alike(client: openai.OpenAI) -> None:
    """Its default is base64, which it decodes itself."""
    coded = client.embeddings.create(input=TEXTS, model="tiny-flat")
    floats = client.embeddings.create(input=TEXTS, model="tiny-flat", encoding_format="float")
    np.testing.assert_array_equal(embeddings(coded), embeddings(floats))
    assert [entry.index for entry in coded.data] == [0, 1, 2]
    assert coded.model == "tiny-flat"
    assert coded.usage.prompt_tokens == coded.usage.total_tokens == 12
    short = client.embeddings.create(input=TEXTS[0], model="tiny-nli", dimensions=3, user="me")
    assert embeddings(short).shape == (1, 3)


@pytest.mark.anyio
async def test_openai_async(base: str, client: openai.OpenAI) -> None:
    expected = embeddings(client.embeddings.create(input=TEXTS, model="tiny-flat"))
    async with openai.AsyncOpenAI(base_url=base, api_key=KEY, timeout=PATIENCE) as other:
        for answer in (
            await other.embeddings.create(input=TEXTS, model="tiny-flat"),
            await other.embeddings.create(input=TEXTS, model="tiny-flat", encoding_format="float"),
        ):
            np.testing.assert_array_equal(embeddings(answer), expected)
        assert {model.id async for model in other.models.list()} >= {"tiny-flat", "tiny-nli"}


def test_openai_raises_its_own_errors(process: Process, base: str, client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as unknown:
        client.embeddings.create(input="a", model="text-embedding-3-small")
    assert (unknown.value.code, unknown.value.param) == ("model_not_found", "model")
    assert unknown.value.type == "invalid_request_error"
    assert "tiny-flat" in unknown.value.message
    with pytest.raises(openai.UnprocessableEntityError) as wrong:
        client.embeddings.create(input=["a", ""], model="tiny-flat")
    assert wrong.value.param == "input[1]"
    with pytest.raises(openai.UnprocessableEntityError, match="token ids"):
        client.embeddings.create(input=[1, 2], model="tiny-flat")
    with (
        openai.OpenAI(base_url=base, api_key="another", max_retries=0, timeout=PATIENCE) as other,
        pytest.raises(openai.AuthenticationError) as shut,
    ):
        other.embeddings.create(input="a", model="tiny-flat")
    assert shut.value.type == "authentication_error"
    assert shut.value.request_id == shut.value.response.headers["X-Request-Id"]


def test_openai_meets_a_full_queue(process: Process, client: openai.OpenAI) -> None:
    url = process.url()
    address = url.removeprefix("http://")
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    with closing(http.client.HTTPConnection(address, timeout=PATIENCE)) as connection:
        with process.held():
            texts = [f"kid {number}" for number in range(64)]
            connection.request(
                "POST", "/embed", json.dumps({"inputs": texts, "model": "tiny-nli"}), headers
            )

            # It was sent first and accepted first: a new connection finds the queue full. Its reserve
            # takes up to eight inputs.
            body = {"inputs": ["a"] * 9, "model": "tiny-flat"}
            refused = httpx.post(f"{url}/embed", json=body, headers=headers, timeout=PATIENCE)
            assert refused.status_code == 429
            with pytest.raises(openai.RateLimitError) as full:
                client.embeddings.create(input=["a"] * 9, model="tiny-flat")
            assert full.value.code == "overloaded"
            assert int(full.value.response.headers["Retry-After"]) >= 1
        assert connection.getresponse().status == 200
    # With its own retries, which obey Retry-After, a client gets through.
    again = client.with_options(max_retries=5).embeddings.create(input="a", model="tiny-flat")
    assert len(again.data) == 1


def test_cohere_embeds_in_several_types(process: Process) -> None:
    """A long text has the mean of its windows unless the client wants it cut."""
    url, long = process.url(), "the dog is not good " * 9
    asked: dict[str, Any] = {"model": "tiny-flat", "input_type": "search_document"}
    with cohere.ClientV2(KEY, base_url=url, timeout=PATIENCE) as client:
        answer = client.embed(
            texts=[*TEXTS, long], embedding_types=["float", "ubinary"], output_dimension=8, **asked
        )
        cut = client.embed(texts=[long], truncate="END", **asked)
    floats, bits = np.array(answer.embeddings.float_), np.array(answer.embeddings.ubinary)
    np.testing.assert_array_equal(np.unpackbits(bits.astype(np.uint8), axis=1), floats > 0)
    assert answer.texts == [*TEXTS, long]
    assert answer.meta is not None
    assert answer.meta.billed_units is not None
    body = {"inputs": [*TEXTS, long], "model": "tiny-flat", "dimensions": 8, "long": "mean"}
    headers = {"Authorization": f"Bearer {KEY}"}
    rows = httpx.post(f"{url}/embed", json=body, headers=headers, timeout=PATIENCE).json()
    np.testing.assert_allclose(floats, rows, atol=1e-5)
    assert not np.allclose(floats[-1], np.array(cut.embeddings.float_)[0, :8], atol=1e-3)

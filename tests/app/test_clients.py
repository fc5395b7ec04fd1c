"""Clients that were written for other services, unmodified, against a real process."""

from collections.abc import Iterator
from typing import Any

import cohere
import httpx
import numpy as np
import openai
import pytest

from tests.app.conftest import KEY
from tests.app.posting import bearer
from tests.process import PATIENCE, Process

TEXTS = ["two kids wash their hands", "the dog is not good", "a man"]


@pytest.fixture(scope="module")
def client(process: Process) -> Iterator[openai.OpenAI]:
    base = f"{process.url()}/v1"
    with openai.OpenAI(base_url=base, api_key=KEY, max_retries=0, timeout=PATIENCE) as client:
        yield client


def test_openai_reads_floats_and_base64_alike(client: openai.OpenAI) -> None:
    """The client requests base64 by default, and decodes it."""
    coded = client.embeddings.create(input=TEXTS, model="tiny-flat")
    floats = client.embeddings.create(input=TEXTS, model="tiny-flat", encoding_format="float")
    for entry, other in zip(coded.data, floats.data, strict=True):
        vectors = np.array([entry.embedding, other.embedding], np.float32)
        np.testing.assert_array_equal(*vectors)
    assert [entry.index for entry in coded.data] == [0, 1, 2]
    assert coded.model == "tiny-flat"
    assert coded.usage.prompt_tokens == coded.usage.total_tokens == 12
    short = client.embeddings.create(input=TEXTS[0], model="tiny-nli", dimensions=3, user="me")
    assert [len(entry.embedding) for entry in short.data] == [3]
    assert {model.id for model in client.models.list()} >= {"tiny-flat", "tiny-nli"}


def test_openai_raises_its_own_errors(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="tiny-flat") as unknown:
        client.embeddings.create(input="a", model="text-embedding-3-small")
    error = unknown.value
    assert (error.code, error.param, error.type) == (
        *("model_not_found", "model", "invalid_request_error"),
    )
    with pytest.raises(openai.UnprocessableEntityError) as wrong:
        client.embeddings.create(input=["a", ""], model="tiny-flat")
    assert wrong.value.param == "input[1]"
    with pytest.raises(openai.UnprocessableEntityError, match="token ids"):
        client.embeddings.create(input=[1, 2], model="tiny-flat")
    with pytest.raises(openai.AuthenticationError) as shut:
        client.with_options(api_key="another").embeddings.create(input="a", model="tiny-flat")
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

"""/embed's vectors as bytes: the numbers of its JSON, and JSON wherever a client does not ask for bytes."""

import json
from base64 import b64decode
from typing import Any

import httpx
import numpy as np
import pytest

from heedful.app.http import responses
from tests.app.test_answers import TEXTS
from tests.app.test_errors import check
from tests.builders import DIMENSION

pytestmark = pytest.mark.anyio

BYTES = "application/octet-stream"


async def ask(client: httpx.AsyncClient, accept: str, path: str = "/embed") -> httpx.Response:
    body = {"inputs": TEXTS, "model": "tiny-flat"}
    answer = await client.post(path, json=body, headers={"Accept": accept})
    assert answer.status_code == 200, answer.text
    return answer


@pytest.mark.parametrize("path", ["/embed", "/"])
@pytest.mark.parametrize(
    ("accept", "dtype"),
    [
        (BYTES, "float32"),
        (f"{BYTES};dtype=float32", "float32"),
        (f"{BYTES}; dtype=float16", "float16"),
        (f"Application/Octet-Stream;q=0.7;dtype=float16, {BYTES};q=0.5", "float16"),
        (f"{BYTES}, application/json", "float32"),
        (f"*/*;q=0.1, {BYTES}", "float32"),
    ],
)
async def test_the_bytes_are_the_numbers_of_the_json(
    client: httpx.AsyncClient, path: str, accept: str, dtype: str
) -> None:
    answer = await ask(client, accept, path)
    assert answer.headers["Content-Type"] == BYTES
    assert answer.headers["X-Dtype"] == dtype
    assert answer.headers["X-Shape"] == f"{len(TEXTS)},{DIMENSION}"
    found = np.frombuffer(answer.content, np.dtype(dtype).newbyteorder("<"))
    rows = np.array((await ask(client, "application/json")).json(), np.float32)
    np.testing.assert_array_equal(found.reshape(rows.shape), rows.astype(dtype))


@pytest.mark.parametrize(
    "accept",
    [
        "*/*",
        "application/*",
        "application/json",
        f"application/json, {BYTES};q=0.9",
        f"application/json, {BYTES}",  # as clients do that take whatever comes
        f"application/json;charset=utf-8, {BYTES}",
        f"{BYTES};q=0.9, application/json, {BYTES};dtype=float16",
        f"{BYTES};q=0",
        f"{BYTES};q=0;dtype=int8",
        "application/octet-streams",
    ],
)
async def test_others_get_json(client: httpx.AsyncClient, accept: str) -> None:
    answer = await ask(client, accept)
    assert answer.headers["Content-Type"] == "application/json"
    assert "X-Shape" not in answer.headers
    assert len(answer.json()) == len(TEXTS)


@pytest.mark.parametrize("parameter", ["dtype=int8", "dtype=", "charset=utf-8"])
async def test_another_dtype_is_refused(client: httpx.AsyncClient, parameter: str) -> None:
    headers = {"Accept": f"{BYTES};{parameter}"}
    answer = await client.post("/embed", json={"inputs": "a dog"}, headers=headers)
    message = check(answer, 422, "invalid_input", "Accept")["message"]
    assert parameter in message
    assert f"{BYTES};dtype=float16" in message


BITS = {"binary": 128, "ubinary": 0}


@pytest.mark.parametrize("name", ["int8", "uint8", *BITS])
async def test_vectors_in_fewer_bits_are_those_of_the_floats(
    client: httpx.AsyncClient, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On every route that sends vectors, as JSON, as bytes and as base64; worked out here from the floats."""
    monkeypatch.setattr(responses, "ROWS_AT_ONCE", len(TEXTS))
    rows = np.array((await ask(client, "application/json")).json(), np.float32)
    scaled = np.array([np.rint(row * np.float32(127 / np.abs(row).max())) for row in rows])
    if name in BITS:
        bits = "".join("1" if value > 0 else "0" for row in rows for value in row)
        sent = [int(bits[i : i + 8], 2) - BITS[name] for i in range(0, len(bits), 8)]
        expected = np.array(sent).reshape(len(rows), -1)
    else:
        expected = scaled + (128 if name == "uint8" else 0)

    async def post(path: str, **body: Any) -> httpx.Response:
        headers = {"Accept": body.pop("accept", "*/*")}
        answer = await client.post(path, json={"model": "tiny-flat", **body}, headers=headers)
        assert answer.status_code == 200, answer.text
        return answer

    own = await post("/embed", inputs=TEXTS, precision=name)
    many = await post("/embed", inputs=TEXTS * 3, precision=name)  # written in parts
    array = await post("/embed", inputs=TEXTS, precision=name, accept=BYTES)
    openai = (await post("/v1/embeddings", input=TEXTS, output_dtype=name)).json()["data"]
    coded = await post("/v1/embeddings", input=TEXTS, output_dtype=name, encoding_format="base64")
    types = [name, "float", "base64"]
    cohere = (await post("/v2/embed", texts=TEXTS, embedding_types=types)).json()
    kind = "int8" if name in ("int8", "binary") else "uint8"
    assert array.headers["X-Dtype"] == kind
    assert array.headers["X-Shape"] == ",".join(map(str, expected.shape))
    for found in (
        own.json(),
        many.json()[-len(TEXTS) :],
        np.frombuffer(array.content, kind).reshape(expected.shape),
        [one["embedding"] for one in openai],
        [np.frombuffer(b64decode(one["embedding"]), kind) for one in coded.json()["data"]],
        cohere["embeddings"][name],
    ):
        np.testing.assert_array_equal(found, expected)
    assert list(cohere["embeddings"]) == types
    assert cohere["texts"] == TEXTS
    for found in (
        cohere["embeddings"]["float"],
        [np.frombuffer(b64decode(row), "<f4") for row in cohere["embeddings"]["base64"]],
    ):
        np.testing.assert_allclose(found, rows, atol=1e-6)


async def test_lines_of_many_requests_are_json(client: httpx.AsyncClient) -> None:
    lines = "".join(f"{json.dumps({'inputs': text})}\n" for text in TEXTS)
    headers = {"Accept": BYTES, "Content-Type": "application/x-ndjson"}
    answer = await client.post("/embed", content=lines, headers=headers)
    answers = [json.loads(line)["answer"] for line in answer.text.splitlines()]
    alone = [(await client.post("/embed", json={"inputs": text})).json() for text in TEXTS]
    np.testing.assert_allclose(answers, alone, atol=1e-5)

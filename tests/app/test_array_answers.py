"""/embed's vectors as bytes: the numbers of its JSON, and JSON wherever a client does not ask for bytes."""

import json

import httpx
import numpy as np
import pytest

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


async def test_errors_are_json(client: httpx.AsyncClient) -> None:
    answer = await client.post("/embed", json={"inputs": " "}, headers={"Accept": BYTES})
    check(answer, 422, "invalid_input", "inputs")


async def test_lines_of_many_requests_are_json(client: httpx.AsyncClient) -> None:
    lines = "".join(f"{json.dumps({'inputs': text})}\n" for text in TEXTS)
    headers = {"Accept": BYTES, "Content-Type": "application/x-ndjson"}
    answer = await client.post("/embed", content=lines, headers=headers)
    answers = [json.loads(line)["answer"] for line in answer.text.splitlines()]
    alone = [(await client.post("/embed", json={"inputs": text})).json() for text in TEXTS]
    np.testing.assert_allclose(answers, alone, atol=1e-5)

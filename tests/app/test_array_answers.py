"""/embed's vectors as bytes: the numbers of its JSON, and JSON wherever a client does not ask for bytes."""

import json
from base64 import b64decode
from typing import Any

import httpx
import numpy as np
import pytest

from heedful.app.http import responses
from tests.app.posting import NDJSON, TEXTS, Client, ask, check
from tests.builders import DIMENSION

pytestmark = pytest.mark.anyio
BYTES, PLAIN = "application/octet-stream", "application/json"
ACCEPTED = {
    BYTES: "float32",
    f"{BYTES};dtype=float32": "float32",
    f"{BYTES}; dtype=float16": "float16",
    f"Application/Octet-Stream;q=0.7;dtype=float16, {BYTES};q=0.5": "float16",
    f"{BYTES}, {PLAIN}": "float32",
    f"*/*;q=0.1, {BYTES}": "float32",
    "*/*": None,
    "application/*": None,
    PLAIN: None,
    f"{PLAIN}, {BYTES};q=0.9": None,
    f"{PLAIN}, {BYTES}": None,  # as clients do that take whatever comes
    f"{PLAIN};charset=utf-8, {BYTES}": None,
    f"{BYTES};q=0.9, {PLAIN}, {BYTES};dtype=float16": None,
    f"{BYTES};q=0": None,
    f"{BYTES};q=0;dtype=int8": None,
    "application/octet-streams": None,
}
"""Accept -> the type of the numbers in bytes; None for JSON."""


async def fetch(client: Client, path: str, accept: str = "*/*", **body: Any) -> httpx.Response:
    body = {"model": "tiny-flat", **body}
    answer = await client.post(path, json=body, headers={"Accept": accept})
    assert answer.status_code == 200, answer.text
    return answer


@pytest.mark.parametrize("path", ["/embed", "/"])
@pytest.mark.parametrize(("accept", "dtype"), ACCEPTED.items())
async def test_vectors_are_bytes_where_a_client_prefers_them(
    client: Client, path: str, accept: str, dtype: str | None
) -> None:
    rows = np.array(await ask(client, path, inputs=TEXTS, model="tiny-flat"), np.float32)
    answer = await fetch(client, path, accept, inputs=TEXTS)
    if dtype is None:
        assert answer.headers["Content-Type"] == PLAIN
        assert "X-Shape" not in answer.headers
        np.testing.assert_array_equal(np.float32(answer.json()), rows)
    else:
        assert answer.headers["Content-Type"] == BYTES
        assert answer.headers["X-Dtype"] == dtype
        assert answer.headers["X-Shape"] == f"{len(TEXTS)},{DIMENSION}"
        values = np.frombuffer(answer.content, np.dtype(dtype).newbyteorder("<"))
        np.testing.assert_array_equal(values.reshape(rows.shape), rows.astype(dtype))


@pytest.mark.parametrize("parameter", ["dtype=int8", "dtype=", "charset=utf-8"])
async def test_another_dtype_is_refused(client: Client, parameter: str) -> None:
    headers = {"Accept": f"{BYTES};{parameter}"}
    answer = await client.post("/embed", json={"inputs": "a dog"}, headers=headers)
    message = check(answer, 422, "invalid_input", "Accept")["message"]
    assert parameter in message
    assert f"{BYTES};dtype=float16" in message


BITS = {"binary": 128, "ubinary": 0}


@pytest.mark.parametrize("name", ["int8", "uint8", *BITS])
async def test_vectors_in_fewer_bits_are_those_of_the_floats(
    client: Client, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On every route that sends vectors, as JSON, as bytes and as base64; worked out here from the floats."""
    monkeypatch.setattr(responses, "ROWS_AT_ONCE", len(TEXTS))
    rows = np.array((await fetch(client, "/embed", inputs=TEXTS)).json(), np.float32)
    if name in BITS:
        bits = "".join("1" if value > 0 else "0" for row in rows for value in row)
        sent = [int(bits[i : i + 8], 2) - BITS[name] for i in range(0, len(bits), 8)]
        expected = np.array(sent).reshape(len(rows), -1)
    else:
        scaled = [np.rint(row * np.float32(127 / np.abs(row).max())) for row in rows]
        expected = np.array(scaled) + (128 if name == "uint8" else 0)
    as_json = await fetch(client, "/embed", inputs=TEXTS, precision=name)
    many = await fetch(client, "/embed", inputs=TEXTS * 3, precision=name)  # written in parts
    array = await fetch(client, "/embed", BYTES, inputs=TEXTS, precision=name)
    openai = await fetch(client, "/v1/embeddings", input=TEXTS, output_dtype=name)
    coding = {"output_dtype": name, "encoding_format": "base64"}
    coded = await fetch(client, "/v1/embeddings", input=TEXTS, **coding)
    types = [name, "float", "base64"]
    cohere = (await fetch(client, "/v2/embed", texts=TEXTS, embedding_types=types)).json()
    kind = "int8" if name in ("int8", "binary") else "uint8"
    assert array.headers["X-Dtype"] == kind
    assert array.headers["X-Shape"] == ",".join(map(str, expected.shape))
    for values in (
        as_json.json(),
        many.json()[-len(TEXTS) :],
        np.frombuffer(array.content, kind).reshape(expected.shape),
        [row["embedding"] for row in openai.json()["data"]],
        [np.frombuffer(b64decode(row["embedding"]), kind) for row in coded.json()["data"]],
        cohere["embeddings"][name],
    ):
        np.testing.assert_array_equal(values, expected)
    assert (list(cohere["embeddings"]), cohere["texts"]) == (types, TEXTS)
    in_base64 = [np.frombuffer(b64decode(row), "<f4") for row in cohere["embeddings"]["base64"]]
    for values in (cohere["embeddings"]["float"], in_base64):
        np.testing.assert_allclose(values, rows, atol=1e-6)


async def test_lines_of_many_requests_are_json(client: Client) -> None:
    lines = "".join(f"{json.dumps({'inputs': text})}\n" for text in TEXTS)
    answer = await client.post("/embed", content=lines, headers={"Accept": BYTES, **NDJSON})
    answers = [json.loads(line)["answer"] for line in answer.text.splitlines()]
    alone = [await ask(client, "/embed", inputs=text) for text in TEXTS]
    np.testing.assert_allclose(answers, alone, atol=1e-5)

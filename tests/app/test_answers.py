"""The routes answer as docs/api.md says, on real tiny models: JSON, or bytes where a client prefers them."""

from base64 import b64decode
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from sklearn.preprocessing import normalize

from heedful.app.http import responses
from heedful.export.bundle_writer import write
from heedful.export.golden import SENTENCES, golden
from heedful.runtime.bundles.bundle import read
from heedful.runtime.bundles.card import GOLDEN
from heedful.text.parse import Parse, Parser
from tests.app.conftest import Serve
from tests.app.posting import TEXTS, Client, ask, check, embed, metrics, post
from tests.builders import DIMENSION, LABELS, BuiltParser, build_bundle

pytestmark = pytest.mark.anyio
MODELS = ("tiny-flat", "tiny-nli", "tiny-related", "tiny-sst2")
LONG = "kids " * 40


async def test_rows_are_scaled_or_cut_as_asked(client: Client) -> None:
    raw = await embed(client, TEXTS, normalize=False)
    unit = normalize(raw)
    assert raw.shape == (len(TEXTS), DIMENSION)
    assert not np.allclose(np.linalg.norm(raw, axis=1), 1, atol=1e-3)
    for fields, expected in (
        ({}, unit),
        ({"dimensions": 3}, normalize(raw[:, :3])),
        ({"dimensions": 3, "normalize": False}, raw[:, :3]),
        ({"model": "tiny-flat"}, unit),  # the default: the first embedding model
        ({"truncation_direction": "Left"}, unit),  # without truncate nothing is cut
        ({"prompt_name": None, "dimensions": None, "truncate": None, "model": None}, unit),
    ):
        np.testing.assert_allclose(await embed(client, TEXTS, **fields), expected, atol=1e-5)
    uncached = "hands wash two bad kids"  # in no other test: its inference takes time
    other = await post(client, "/embed", inputs=[*TEXTS, uncached], model="tiny-nli")
    assert not np.allclose(other.json()[:-1], unit)
    stages = dict(part.split(";dur=") for part in other.headers["Server-Timing"].split(", "))
    assert list(stages) == ["parse", "queue", "inference", "total"]
    assert all(float(stages[stage]) > 0 for stage in ("parse", "inference", "total"))  # ms
    assert await ask(client, "/embed", inputs="kids") == await ask(client, "/", inputs=["kids"])


async def test_tokenize_gives_offsets_and_the_parsers_tree(client: Client, models: Path) -> None:
    texts = ["two kids wash their hands", "  the\tnaïve 🐕dog\n is\u00a0good", "e\u0301!"]
    answer = await ask(client, "/tokenize", inputs=texts)
    parses = Parser.load(models / "parser").parse(texts, 16, tree=True)
    for text, tokens, parse in zip(texts, answer, parses, strict=True):
        assert [token["head"] for token in tokens] == parse.heads.tolist()
        assert [token["dep"] for token in tokens] == list(parse.deps)
        for token in tokens:
            assert text[token["start"] : token["stop"]] == token["text"]
            assert token["known"] == (token["id"] > 1)
            assert not token["composed"]  # by a bundle that composes no words
        assert "".join(token["text"] for token in tokens) == "".join(text.split())
    assert all(token["known"] for token in answer[0])
    assert not answer[2][0]["known"]
    cut = await post(client, "/tokenize", inputs=[LONG, "kids", LONG], truncate=True)
    assert cut.headers["X-Truncated"] == "2"
    assert [len(tokens) for tokens in cut.json()] == [16, 1, 16]


@pytest.mark.parametrize("truncate", [False, True])
async def test_models_and_info_say_what_is_in_use(serve: Serve, truncate: bool) -> None:
    """/info has TEI's fields for the default embedding model."""
    async with serve(max_batch_inputs=64, truncate=truncate) as client:
        info = (await client.get("/info")).json()
        listed = (await client.get("/models")).json()
        embedded = await client.post("/embed", json={"inputs": LONG})
    cards = {card["name"]: card for card in listed["models"]}
    assert tuple(cards) == tuple(info["models"]) == MODELS
    assert listed["defaults"] == {
        **{"embed": "tiny-flat", "classify": "tiny-sst2", "zero-shot": "tiny-flat"},
        **{"nli": "tiny-nli", "relatedness": "tiny-related", "explain": "tiny-sst2"},
    }
    assert cards["tiny-sst2"]["labels"] == list(LABELS["classification"])
    assert (info["device"], info["provider"]) == ("cpu", "CPUExecutionProvider")
    assert info["limits"]["max_batch_inputs"] == info["max_client_batch_size"] == 64
    assert info["precision"] == dict.fromkeys(MODELS, "float32")
    assert info["parser"]["name"] == "en_tiny"
    assert info["versions"] == {name: card["version"] for name, card in cards.items()}
    assert info["model_id"] == info["served_model_name"] == "tiny-flat"
    assert info["model_type"] == {"embedding": {"pooling": "tiny"}}
    assert info["max_input_length"] == cards["tiny-flat"]["max_tokens"] < 40
    assert info["auto_truncate"] is embedded.is_success is truncate
    assert info["version"]


async def test_what_moved_is_named_by_the_live_service(
    serve: Serve, tmp_path: Path, pipeline: BuiltParser, parser: Parser
) -> None:
    """/ready?deep=1, of golden vectors with another first tree; a bundle may have none."""
    (tmp_path / "parser").symlink_to(pipeline.folder)

    def other(texts: Sequence[str], max_tokens: int, tree: bool) -> list[Parse]:
        first, *rest = parser.parse(texts, max_tokens, tree)
        return [replace(first, heads=np.full(len(first), len(first) - 1)), *rest]

    for name, parse in (("tiny-same", parser.parse), ("tiny-other", other)):
        build_bundle(tmp_path, pipeline, name=name)
        bundle = read(tmp_path / name)
        files = {**bundle.files, GOLDEN: golden(bundle, parse).to_bytes()}
        write(tmp_path / name, bundle.card.fields(), files)
    build_bundle(tmp_path, pipeline, name="tiny-bare")
    async with serve(models=tmp_path, threads=1) as client:
        assert (await client.get("/ready")).json() == {"status": "ready", "refused": []}
        known = (await client.get("/info")).json()["golden"]
        assert known["tiny-bare"] is None
        assert known["tiny-same"] < 1e-6  # looked at when it was loaded
        for _ in range(2):  # the second within the interval: the same answer
            error = check(await client.get("/ready?deep=1"), 503, "golden_moved")
            moved = f"golden vectors: tiny-other: the tree of {SENTENCES[0]!r} has changed"
            assert error["message"] == moved
        check(await client.get("/ready?deep=maybe"), 422, "invalid_value", "deep")
        page = await metrics(client)
        assert 'heedful_golden_deviation{model="tiny-same"}' in page
        assert 'heedful_golden_deviation{model="tiny-bare"}' not in page


async def test_a_clients_request_id_comes_back_where_it_is_one(client: Client) -> None:
    for sent in ("abc-123", "x" * 128, None, "", "two words", "x" * 129):
        headers = {} if sent is None else {"X-Request-Id": sent}
        answers = [await client.get("/health", headers=headers) for _ in range(2)]
        ids = {answer.headers["X-Request-Id"] for answer in answers}
        assert ids == {sent} if sent in ("abc-123", "x" * 128) else len(ids) == 2, sent


BYTES, PLAIN = "application/octet-stream", "application/json"
ACCEPTED = {
    BYTES: "float32",
    f"{BYTES}; dtype=float16": "float16",
    f"Application/Octet-Stream;q=0.7;dtype=float16, {BYTES};q=0.5": "float16",
    f"{BYTES}, {PLAIN}": "float32",
    f"*/*;q=0.1, {BYTES}": "float32",
    "*/*": None,
    f"{PLAIN}, {BYTES};q=0.9": None,
    f"{PLAIN};charset=utf-8, {BYTES}": None,  # as clients do that take whatever comes
    f"{BYTES};q=0.9, {PLAIN}, {BYTES};dtype=float16": None,
    f"{BYTES};q=0;dtype=int8": None,
}
"""Accept -> the type of the numbers in bytes; None for JSON."""


async def fetch(client: Client, path: str, accept: str = "*/*", **body: Any) -> httpx.Response:
    body = {"model": "tiny-flat", **body}
    answer = await client.post(path, json=body, headers={"Accept": accept})
    assert answer.status_code == 200, answer.text
    return answer


async def test_vectors_are_bytes_where_a_client_prefers_them(client: Client) -> None:
    rows = (await embed(client, TEXTS)).astype(np.float32)
    for accept, dtype in ACCEPTED.items():
        answer = await fetch(client, "/", accept, inputs=TEXTS)
        if dtype is None:
            assert answer.headers["Content-Type"] == PLAIN, accept
            assert "X-Shape" not in answer.headers
        else:
            about = [answer.headers[name] for name in ("Content-Type", "X-Dtype", "X-Shape")]
            assert about == [BYTES, dtype, f"{len(TEXTS)},{DIMENSION}"], accept
            values = np.frombuffer(answer.content, np.dtype(dtype).newbyteorder("<"))
            np.testing.assert_array_equal(values.reshape(rows.shape), rows.astype(dtype))
    for parameter in ("dtype=int8", "dtype=", "charset=utf-8"):
        headers = {"Accept": f"{BYTES};{parameter}"}
        refused = await client.post("/embed", json={"inputs": "a dog"}, headers=headers)
        message = check(refused, 422, "invalid_input", "Accept")["message"]
        assert parameter in message
        assert f"{BYTES};dtype=float16" in message


BITS = {"binary": 128, "ubinary": 0}


@pytest.mark.parametrize("name", ["int8", "uint8", *BITS])
async def test_vectors_in_fewer_bits_are_those_of_the_floats(
    client: Client, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On every route that sends vectors, as JSON, as bytes and as base64; worked out here from the floats."""
    monkeypatch.setattr(responses, "ROWS_AT_ONCE", len(TEXTS))
    rows = (await embed(client, TEXTS)).astype(np.float32)
    if name in BITS:
        bits = "".join("1" if value > 0 else "0" for row in rows for value in row)
        sent = [int(bits[i : i + 8], 2) - BITS[name] for i in range(0, len(bits), 8)]
        expected = np.array(sent).reshape(len(rows), -1)
    else:
        scaled = [np.rint(row * np.float32(127 / np.abs(row).max())) for row in rows]
        expected = np.array(scaled) + (128 if name == "uint8" else 0)
    many = await fetch(client, "/embed", inputs=TEXTS * 3, precision=name)  # written in parts
    array = await fetch(client, "/embed", BYTES, inputs=TEXTS, precision=name)
    null: dict[str, Any] = {"encoding_format": None}  # as litellm sends it from 1.80.11 on
    openai = await fetch(client, "/v1/embeddings", input=TEXTS, output_dtype=name, **null)
    coding = {"output_dtype": name, "encoding_format": "base64"}
    coded = await fetch(client, "/v1/embeddings", input=TEXTS, **coding)
    types = [name, "float", "base64"]
    cohere = (await fetch(client, "/v2/embed", texts=TEXTS, embedding_types=types)).json()
    kind = "int8" if name in ("int8", "binary") else "uint8"
    assert array.headers["X-Dtype"] == kind
    assert array.headers["X-Shape"] == ",".join(map(str, expected.shape))
    for values in (
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

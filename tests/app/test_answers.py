"""The routes answer as docs/api.md says, on real tiny models: JSON, or bytes where a client prefers them."""

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from heedful.app.http import responses
from heedful.text.parse import ParseJob, Parser
from tests.app.conftest import Serve
from tests.app.posting import NDJSON, TEXTS, Client, ask, check, embed, post
from tests.builders import DIMENSION, LABELS

pytestmark = pytest.mark.anyio
MODELS = ("tiny-flat", "tiny-nli", "tiny-related", "tiny-sst2")
LONG = "kids " * 40


def unit(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    scaled: np.ndarray[Any, Any] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return scaled


async def test_rows_are_scaled_or_cut_as_asked(client: Client) -> None:
    raw = await embed(client, TEXTS, normalize=False)
    assert raw.shape == (len(TEXTS), DIMENSION)
    assert not np.allclose(np.linalg.norm(raw, axis=1), 1, atol=1e-3)
    for fields, expected in (
        ({}, unit(raw)),
        ({"dimensions": 3}, unit(raw[:, :3])),
        ({"dimensions": 3, "normalize": False}, raw[:, :3]),
        ({"dimensions": DIMENSION}, unit(raw)),
        ({"model": "tiny-flat"}, unit(raw)),  # the default: the first embedding model
        ({"truncation_direction": "Right"}, unit(raw)),
        ({"truncation_direction": "Left"}, unit(raw)),  # without truncate nothing is cut
        ({"prompt_name": None, "dimensions": None, "truncate": None, "model": None}, unit(raw)),
    ):
        np.testing.assert_allclose(await embed(client, TEXTS, **fields), expected, atol=1e-5)
    assert not np.allclose(await embed(client, TEXTS, model="tiny-nli"), unit(raw))


@pytest.mark.parametrize("path", ["/", "/embed", "/classify", "/tokenize"])
async def test_a_bare_string_is_a_list_of_one(client: Client, path: str) -> None:
    bare, listed = [await ask(client, path, inputs=inputs) for inputs in ("kids", ["kids"])]
    assert ([bare] if path == "/classify" else bare) == listed
    if path == "/":
        assert bare == (await embed(client, "kids")).tolist()


async def test_truncate_cuts_and_counts_in_a_header(client: Client) -> None:
    for path in ("/embed", "/tokenize", "/explain"):
        inputs = LONG if path == "/explain" else [LONG, "kids", LONG]
        answer = await post(client, path, inputs=inputs, truncate=True)
        assert answer.headers["X-Truncated"] == str(1 + isinstance(inputs, list))
        if path == "/tokenize":
            assert [len(tokens) for tokens in answer.json()] == [16, 1, 16]
    assert len(answer.json()["sentences"][0]["tokens"]) == 16
    answer = await post(client, "/relatedness", pairs=[{"a": "kids", "b": LONG}], truncate=True)
    assert answer.headers["X-Truncated"] == "1"
    answer = await post(client, "/embed", inputs="kids", truncate=True)
    assert "X-Truncated" not in answer.headers


async def test_nli_of_a_pair_and_of_many(client: Client) -> None:
    orders = ((0, 1), (1, 0), (2, 2), (3, 4))
    pairs = [{"premise": TEXTS[i], "hypothesis": TEXTS[j]} for i, j in orders]
    many = await post(client, "/nli", pairs=pairs)
    results = many.json()["results"]
    for pair, result in zip(pairs, results, strict=True):
        alone = await ask(client, "/nli", **pair)
        assert list(alone) == ["label", "scores"]
        assert list(alone["scores"]) == ["entailment", "neutral", "contradiction"]
        assert alone["label"] == result["label"] == max(alone["scores"], key=alone["scores"].get)
        assert alone["scores"] == pytest.approx(result["scores"], abs=1e-5)
        assert sum(alone["scores"].values()) == pytest.approx(1, abs=1e-5)
    assert results[0]["scores"] != pytest.approx(results[1]["scores"], abs=1e-3)  # order matters
    stages = dict(part.split(";dur=") for part in many.headers["Server-Timing"].split(", "))
    assert list(stages) == ["parse", "queue", "inference", "total"]  # ms
    assert all(float(stages[stage]) > 0 for stage in ("parse", "inference", "total"))
    assert float(stages["queue"]) >= 0


async def test_classify_ranks_every_label_or_the_best(client: Client) -> None:
    answer = await ask(client, "/classify", inputs=TEXTS)
    assert len(answer) == len(TEXTS)
    for ranked in answer:
        scores = [entry["score"] for entry in ranked]
        assert scores == sorted(scores, reverse=True)
        assert sum(scores) == pytest.approx(1, abs=1e-5)
        assert {entry["label"] for entry in ranked} == set(LABELS["classification"])
    assert len({ranked[0]["label"] for ranked in answer}) == 2  # not one label for all
    for k in (1, 9):
        best = await ask(client, "/classify", inputs=TEXTS, top_k=k)
        assert best == [ranked[:k] for ranked in answer]


async def test_tokenize_gives_offsets_and_the_parsers_tree(client: Client, models: Path) -> None:
    texts = ["two kids wash their hands", "  the\tnaïve 🐕dog\n is\u00a0good", "e\u0301!"]
    answer = await ask(client, "/tokenize", inputs=texts)
    parses = Parser.load(models / "parser").parse([ParseJob(text, 16, True) for text in texts])
    for text, tokens, parse in zip(texts, answer, parses, strict=True):
        assert [token["head"] for token in tokens] == parse.heads.tolist()
        assert [token["dep"] for token in tokens] == list(parse.deps)
        for token in tokens:
            assert set(token) == {"id", "text", "start", "stop", "head", "dep", "known", "composed"}
            assert text[token["start"] : token["stop"]] == token["text"]
            assert token["known"] == (token["id"] > 1)
            assert not token["composed"]  # by a bundle that composes no words
        assert "".join(token["text"] for token in tokens) == "".join(text.split())
    assert all(token["known"] for token in answer[0])
    assert not answer[2][0]["known"]


async def test_models_are_the_cards(client: Client) -> None:
    answer = (await client.get("/models")).json()
    cards = {card["name"]: card for card in answer["models"]}
    assert set(cards) == set(MODELS)
    assert answer["defaults"] == {
        **{"embed": "tiny-flat", "classify": "tiny-sst2", "zero-shot": "tiny-flat"},
        **{"nli": "tiny-nli", "relatedness": "tiny-related", "explain": "tiny-sst2"},
    }
    card = cards["tiny-sst2"]
    assert (card["task"], card["encoder"]["name"], card["max_tokens"]) == ("sst2", "tiny", 16)
    assert (card["dimension"], card["labels"]) == (DIMENSION, list(LABELS["classification"]))
    assert card["scores"][0]["metric"] == "accuracy"


@pytest.mark.parametrize("truncate", [False, True])
async def test_info_says_what_is_in_use(serve: Serve, truncate: bool) -> None:
    """/info has TEI's fields for the default embedding model."""
    async with serve(max_batch_inputs=64, truncate=truncate) as client:
        answer = (await client.get("/info")).json()
        cards = {card["name"]: card for card in (await client.get("/models")).json()["models"]}
        embedded = await client.post("/embed", json={"inputs": LONG})
    assert (answer["device"], answer["provider"]) == ("cpu", "CPUExecutionProvider")
    assert answer["limits"]["max_batch_inputs"] == answer["max_client_batch_size"] == 64
    assert answer["models"] == list(MODELS)
    assert answer["precision"] == dict.fromkeys(MODELS, "float32")
    assert answer["parser"]["name"] == "en_tiny"
    assert answer["versions"] == {name: card["version"] for name, card in cards.items()}
    card = cards["tiny-flat"]
    assert answer["model_id"] == answer["served_model_name"] == "tiny-flat"
    assert answer["model_type"] == {"embedding": {"pooling": card["encoder"]["name"]}}
    assert answer["model_dtype"] == "float32"
    assert answer["max_input_length"] == card["max_tokens"] < 40
    assert answer["auto_truncate"] is embedded.is_success is truncate
    assert answer["version"]


@pytest.mark.parametrize("sent", ["abc-123", "x" * 128, None, "", "two words", "x" * 129, "a\tb"])
async def test_a_clients_request_id_comes_back_where_it_is_one(
    client: Client, sent: str | None
) -> None:
    headers = {} if sent is None else {"X-Request-Id": sent}
    ids = {(await client.get("/health", headers=headers)).headers["X-Request-Id"] for _ in range(2)}
    assert ids == {sent} if sent in ("abc-123", "x" * 128) else len(ids) == 2


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

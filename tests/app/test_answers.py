"""The routes answer as docs/api.md says, on real tiny models."""

from typing import Any

import httpx
import numpy as np
import pytest

from tests.app.conftest import Serve
from tests.builders import DIMENSION, LABELS

pytestmark = pytest.mark.anyio

TEXTS = [
    "two kids wash their hands",
    "the dog",
    "a man at the ballgame is not good",
    "bad",
    "kids and dogs wash hands, not bad at all!",
]


MODELS = ("tiny-flat", "tiny-nli", "tiny-related", "tiny-sst2")


async def embed(client: httpx.AsyncClient, inputs: Any, **more: Any) -> np.ndarray[Any, Any]:
    answer = await client.post("/embed", json={"inputs": inputs, **more})
    assert answer.status_code == 200, answer.text
    return np.array(answer.json())


def unit(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    scaled: np.ndarray[Any, Any] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return scaled


async def test_rows_are_scaled_or_cut_as_asked(client: httpx.AsyncClient) -> None:
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
async def test_a_bare_string_is_a_list_of_one(client: httpx.AsyncClient, path: str) -> None:
    bare, listed = [
        (await client.post(path, json={"inputs": inputs})).json() for inputs in ("kids", ["kids"])
    ]
    assert ([bare] if path == "/classify" else bare) == listed
    if path == "/":
        assert bare == (await embed(client, "kids")).tolist()


async def test_truncate_cuts_and_counts_in_a_header(client: httpx.AsyncClient) -> None:
    long = "kids " * 40
    for path in ("/embed", "/tokenize"):
        answer = await client.post(path, json={"inputs": [long, "kids", long], "truncate": True})
        assert (answer.status_code, answer.headers["X-Truncated"]) == (200, "2")
    assert [len(tokens) for tokens in answer.json()] == [16, 1, 16]
    pairs = {"pairs": [{"a": "kids", "b": long}], "truncate": True}
    assert (await client.post("/relatedness", json=pairs)).headers["X-Truncated"] == "1"
    answer = await client.post("/embed", json={"inputs": "kids", "truncate": True})
    assert "X-Truncated" not in answer.headers


async def test_nli_one_pair_and_many(client: httpx.AsyncClient) -> None:
    pairs = [
        {"premise": TEXTS[i], "hypothesis": TEXTS[j]} for i, j in ((0, 1), (1, 0), (2, 2), (3, 4))
    ]
    many = await client.post("/nli", json={"pairs": pairs})
    assert many.status_code == 200
    results = many.json()["results"]
    for pair, result in zip(pairs, results, strict=True):
        alone = (await client.post("/nli", json=pair)).json()
        assert list(alone) == ["label", "scores"]
        assert list(alone["scores"]) == ["entailment", "neutral", "contradiction"]
        assert alone["label"] == result["label"] == max(alone["scores"], key=alone["scores"].get)
        assert alone["scores"] == pytest.approx(result["scores"], abs=1e-5)
        assert sum(alone["scores"].values()) == pytest.approx(1, abs=1e-5)
    assert results[0]["scores"] != pytest.approx(results[1]["scores"], abs=1e-3)  # order matters


async def test_classify_ranks_every_label_or_the_best(client: httpx.AsyncClient) -> None:
    answer = (await client.post("/classify", json={"inputs": TEXTS})).json()
    assert len(answer) == len(TEXTS)
    for ranked in answer:
        scores = [entry["score"] for entry in ranked]
        assert scores == sorted(scores, reverse=True)
        assert sum(scores) == pytest.approx(1, abs=1e-5)
        assert {entry["label"] for entry in ranked} == set(LABELS["classification"])
    assert len({ranked[0]["label"] for ranked in answer}) == 2  # not one label for all
    for k in (1, 9):
        best = (await client.post("/classify", json={"inputs": TEXTS, "top_k": k})).json()
        assert best == [ranked[:k] for ranked in answer]


async def test_tokenize_gives_offsets_and_the_tree(client: httpx.AsyncClient) -> None:
    texts = ["two kids wash their hands", "  the\tnaïve 🐕dog\n is\u00a0good", "e\u0301!"]
    answer = (await client.post("/tokenize", json={"inputs": texts})).json()
    for text, tokens in zip(texts, answer, strict=True):
        assert tokens
        for token in tokens:
            assert set(token) == {"id", "text", "start", "stop", "head", "dep", "known", "composed"}
            assert text[token["start"] : token["stop"]] == token["text"]
            assert 0 <= token["head"] < len(tokens)
            assert token["known"] == (token["id"] > 1)
            assert token["dep"]
        assert any(token["head"] == i for i, token in enumerate(tokens))  # a root
        covered = "".join(token["text"] for token in tokens)
        assert covered == "".join(text.split())
    assert all(token["known"] for token in answer[0])
    assert not answer[2][0]["known"]


async def test_models_are_the_cards(client: httpx.AsyncClient) -> None:
    answer = (await client.get("/models")).json()
    cards = {card["name"]: card for card in answer["models"]}
    assert set(cards) == set(MODELS)
    assert answer["defaults"] == {
        "embed": "tiny-flat",
        "classify": "tiny-sst2",
        "zero-shot": "tiny-flat",
        "nli": "tiny-nli",
        "relatedness": "tiny-related",
        "explain": "tiny-sst2",
    }
    card = cards["tiny-sst2"]
    assert (card["task"], card["encoder"]["name"], card["max_tokens"]) == ("sst2", "tiny", 16)
    assert (card["dimension"], card["labels"]) == (DIMENSION, list(LABELS["classification"]))
    assert card["scores"][0]["metric"] == "accuracy"
    listed = (await client.get("/v1/models")).json()  # OpenAI's list
    assert listed["object"] == "list"
    assert {entry["id"] for entry in listed["data"]} == set(MODELS)
    for entry in listed["data"]:
        assert entry["object"] == "model"
        assert isinstance(entry["created"], int)
        assert isinstance(entry["owned_by"], str)


@pytest.mark.parametrize("truncate", [False, True])
async def test_info_says_what_is_in_use(serve: Serve, truncate: bool) -> None:
    """With TEI's fields, of the default embedding model."""
    async with serve(max_batch_inputs=64, truncate=truncate) as client:
        answer = (await client.get("/info")).json()
        cards = (await client.get("/models")).json()
        embedded = await client.post("/embed", json={"inputs": "kids " * 40})
    assert answer["provider"] == "CPUExecutionProvider"
    assert answer["device"] == "cpu"
    assert answer["limits"]["max_batch_inputs"] == answer["max_client_batch_size"] == 64
    assert answer["models"] == list(MODELS)
    assert answer["precision"] == dict.fromkeys(MODELS, "float32")
    assert answer["parser"]["name"] == "en_tiny"
    assert answer["versions"] == {one["name"]: one["version"] for one in cards["models"]}
    [card] = [one for one in cards["models"] if one["name"] == cards["defaults"]["embed"]]
    assert answer["model_id"] == answer["served_model_name"] == card["name"] == "tiny-flat"
    assert answer["model_type"] == {"embedding": {"pooling": card["encoder"]["name"]}}
    assert answer["model_dtype"] == answer["precision"]["tiny-flat"]
    assert answer["max_input_length"] == card["max_tokens"] < 40
    assert answer["auto_truncate"] is embedded.is_success is truncate
    assert answer["version"]


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        *(("abc-123", True), ("x" * 128, True), (None, False), ("", False)),
        *(("two words", False), ("x" * 129, False), ("a\tb", False)),
    ],
)
async def test_a_clients_request_id_comes_back_where_it_is_one(
    client: httpx.AsyncClient, sent: str | None, kept: bool
) -> None:
    headers = {} if sent is None else {"X-Request-Id": sent}
    ids = {(await client.get("/health", headers=headers)).headers["X-Request-Id"] for _ in range(2)}
    assert (ids == {sent}) == kept
    assert len(ids) == 2 - kept


async def test_server_timing_has_the_stages_in_ms(client: httpx.AsyncClient) -> None:
    answer = await client.post("/nli", json={"premise": TEXTS[0], "hypothesis": TEXTS[1]})
    stages = dict(part.split(";dur=") for part in answer.headers["Server-Timing"].split(", "))
    assert list(stages) == ["parse", "queue", "inference", "total"]
    spent = [float(value) for value in stages.values()]
    assert min(spent) >= 0
    assert spent[0] > 0
    assert spent[2] > 0

"""The routes answer as docs/api.md says, on real tiny models."""

import asyncio
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


async def test_embed_answers_a_bare_list_of_rows_of_norm_one(client: httpx.AsyncClient) -> None:
    rows = await embed(client, TEXTS)
    assert rows.shape == (len(TEXTS), DIMENSION)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)


async def test_a_bare_string_is_one_row(client: httpx.AsyncClient) -> None:
    assert (await embed(client, TEXTS[0])).shape == (1, DIMENSION)


async def test_the_root_answers_as_embed_does(client: httpx.AsyncClient) -> None:
    both = [(await client.post(path, json={"inputs": TEXTS})).json() for path in ("/", "/embed")]
    assert both[0] == both[1]


async def test_rows_are_in_the_inputs_order_whatever_stands_beside_them(
    client: httpx.AsyncClient,
) -> None:
    many = [TEXTS[i % len(TEXTS)] for i in np.random.default_rng(0).permutation(60)]
    alone = dict(zip(TEXTS, await asyncio.gather(*(embed(client, t) for t in TEXTS)), strict=True))
    rows = await embed(client, many)
    np.testing.assert_allclose(rows, [alone[text][0] for text in many], atol=1e-5)


async def test_normalize_false_gives_the_same_directions(client: httpx.AsyncClient) -> None:
    raw = await embed(client, TEXTS, normalize=False)
    norms = np.linalg.norm(raw, axis=1, keepdims=True)
    assert not np.allclose(norms, 1, atol=1e-3)
    np.testing.assert_allclose(raw / norms, await embed(client, TEXTS), atol=1e-5)


async def test_dimensions_are_cut_first_and_normalised_after(client: httpx.AsyncClient) -> None:
    raw = await embed(client, TEXTS, normalize=False)
    cut = raw[:, :3]
    np.testing.assert_allclose(
        await embed(client, TEXTS, dimensions=3),
        cut / np.linalg.norm(cut, axis=1, keepdims=True),
        atol=1e-5,
    )
    np.testing.assert_allclose(
        await embed(client, TEXTS, dimensions=3, normalize=False), cut, atol=1e-6
    )
    assert (await embed(client, TEXTS, dimensions=DIMENSION)).shape == raw.shape


async def test_a_model_is_named_and_the_default_is_one_of_the_task(
    client: httpx.AsyncClient,
) -> None:
    flat, nli = [await embed(client, TEXTS, model=name) for name in ("tiny-flat", "tiny-nli")]
    assert not np.allclose(flat, nli)
    np.testing.assert_array_equal(await embed(client, TEXTS), flat)  # the first embedding model


async def test_fields_of_tei_that_change_nothing_are_taken(client: httpx.AsyncClient) -> None:
    plain = await embed(client, TEXTS)
    for more in (
        {"truncation_direction": "Right"},
        {"truncation_direction": "Left"},  # without truncate nothing is cut
        {"prompt_name": None, "dimensions": None, "truncate": None, "model": None},
    ):
        np.testing.assert_array_equal(await embed(client, TEXTS, **more), plain)


async def test_truncate_cuts_and_counts_in_a_header(client: httpx.AsyncClient) -> None:
    long = "kids " * 40
    answer = await client.post("/embed", json={"inputs": [long, "kids", long], "truncate": True})
    assert answer.status_code == 200
    assert answer.headers["X-Truncated"] == "2"
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


async def test_classify_ranks_every_label(client: httpx.AsyncClient) -> None:
    answer = (await client.post("/classify", json={"inputs": TEXTS})).json()
    assert len(answer) == len(TEXTS)
    for ranked in answer:
        scores = [entry["score"] for entry in ranked]
        assert scores == sorted(scores, reverse=True)
        assert sum(scores) == pytest.approx(1, abs=1e-5)
        assert {entry["label"] for entry in ranked} == set(LABELS["classification"])
    assert len({ranked[0]["label"] for ranked in answer}) == 2  # not one label for all


async def test_classify_a_bare_string_is_one_list(client: httpx.AsyncClient) -> None:
    bare = (await client.post("/classify", json={"inputs": TEXTS[0]})).json()
    listed = (await client.post("/classify", json={"inputs": [TEXTS[0]]})).json()
    assert [bare] == listed


async def test_top_k_keeps_the_best(client: httpx.AsyncClient) -> None:
    every = (await client.post("/classify", json={"inputs": TEXTS})).json()
    best = (await client.post("/classify", json={"inputs": TEXTS, "top_k": 1})).json()
    assert best == [ranked[:1] for ranked in every]
    assert (await client.post("/classify", json={"inputs": TEXTS, "top_k": 9})).json() == every


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


async def test_tokenize_a_bare_string_is_a_list_of_one(client: httpx.AsyncClient) -> None:
    bare = (await client.post("/tokenize", json={"inputs": "kids"})).json()
    assert [[token["text"] for token in tokens] for tokens in bare] == [["kids"]]


async def test_tokenize_cuts_where_the_model_does(client: httpx.AsyncClient) -> None:
    body = {"inputs": ["kids " * 40, "kids"], "truncate": True}
    answer = await client.post("/tokenize", json=body)
    assert [len(tokens) for tokens in answer.json()] == [16, 1]
    assert answer.headers["X-Truncated"] == "1"


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
    assert card["task"] == "sst2"
    assert card["encoder"]["name"] == "tiny"
    assert card["dimension"] == DIMENSION
    assert card["labels"] == list(LABELS["classification"])
    assert card["max_tokens"] == 16
    assert card["scores"][0]["metric"] == "accuracy"


async def test_v1_models_is_openais_list(client: httpx.AsyncClient) -> None:
    answer = (await client.get("/v1/models")).json()
    assert answer["object"] == "list"
    assert {entry["id"] for entry in answer["data"]} == set(MODELS)
    for entry in answer["data"]:
        assert entry["object"] == "model"
        assert isinstance(entry["created"], int)
        assert isinstance(entry["owned_by"], str)


async def test_info_says_what_is_in_use(client: httpx.AsyncClient) -> None:
    answer = (await client.get("/info")).json()
    assert answer["provider"] == "CPUExecutionProvider"
    assert answer["device"] == "cpu"
    assert answer["limits"]["max_batch_inputs"] == 64
    assert answer["models"] == list(MODELS)
    assert answer["precision"] == dict.fromkeys(MODELS, "float32")
    assert answer["parser"]["name"] == "en_tiny"
    assert answer["version"]


@pytest.mark.parametrize("truncate", [False, True])
async def test_info_has_teis_fields_of_the_default_embedding_model(
    serve: Serve, truncate: bool
) -> None:
    async with serve(max_batch_inputs=64, truncate=truncate) as client:
        answer = (await client.get("/info")).json()
        cards = (await client.get("/models")).json()
        embedded = await client.post("/embed", json={"inputs": "kids " * 40})
    [card] = [one for one in cards["models"] if one["name"] == cards["defaults"]["embed"]]
    assert answer["model_id"] == answer["served_model_name"] == card["name"] == "tiny-flat"
    assert answer["model_type"] == {"embedding": {"pooling": card["encoder"]["name"]}}
    assert answer["model_dtype"] == answer["precision"]["tiny-flat"]
    assert answer["max_client_batch_size"] == 64
    assert answer["max_input_length"] == card["max_tokens"] < 40
    assert answer["auto_truncate"] is embedded.is_success is truncate
    assert answer["version"]


async def test_health_and_ready(client: httpx.AsyncClient) -> None:
    assert (await client.get("/health")).json() == {"status": "ok"}
    assert (await client.get("/ready")).json() == {"status": "ready", "refused": []}


@pytest.mark.parametrize("sent", ["abc-123", "x" * 128])
async def test_a_clients_request_id_comes_back(client: httpx.AsyncClient, sent: str) -> None:
    answer = await client.get("/health", headers={"X-Request-Id": sent})
    assert answer.headers["X-Request-Id"] == sent


@pytest.mark.parametrize("sent", [None, "", "two words", "x" * 129, "a\tb"])
async def test_a_missing_or_odd_request_id_is_replaced(
    client: httpx.AsyncClient, sent: str | None
) -> None:
    ids = set()
    for _ in range(2):
        headers = {} if sent is None else {"X-Request-Id": sent}
        ids.add((await client.get("/health", headers=headers)).headers["X-Request-Id"])
    assert len(ids) == 2
    assert sent not in ids


async def test_server_timing_has_the_stages_in_ms(client: httpx.AsyncClient) -> None:
    answer = await client.post("/nli", json={"premise": TEXTS[0], "hypothesis": TEXTS[1]})
    stages = dict(part.split(";dur=") for part in answer.headers["Server-Timing"].split(", "))
    assert list(stages) == ["parse", "queue", "inference", "total"]
    spent = [float(value) for value in stages.values()]
    assert min(spent) >= 0
    assert spent[0] > 0
    assert spent[2] > 0

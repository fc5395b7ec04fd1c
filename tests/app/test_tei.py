"""TEI's /predict, /similarity and /rerank, against what the other routes answer; Cohere's and Jina's /v1/rerank
and /v2/rerank."""

from typing import Any

import httpx
import numpy as np
import pytest

from tests.app.test_answers import TEXTS, embed

pytestmark = pytest.mark.anyio

PAIRS = [[TEXTS[0], TEXTS[1]], [TEXTS[1], TEXTS[0]], [TEXTS[2], TEXTS[3]]]


async def post(client: httpx.AsyncClient, path: str, **body: Any) -> Any:
    answer = await client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_predict_texts_is_classify(client: httpx.AsyncClient) -> None:
    classified = await post(client, "/classify", inputs=TEXTS)
    assert await post(client, "/predict", inputs=[[text] for text in TEXTS]) == classified
    for inputs in (TEXTS[0], [TEXTS[0]]):  # TEI takes a list of one for the text alone
        assert await post(client, "/predict", inputs=inputs) == classified[0]


async def test_predict_pairs_is_nli(client: httpx.AsyncClient) -> None:
    pairs = [{"premise": first, "hypothesis": second} for first, second in PAIRS]
    expected = (await post(client, "/nli", pairs=pairs))["results"]
    answer = await post(client, "/predict", inputs=PAIRS)
    assert [{row["label"]: row["score"] for row in rows} for rows in answer] == [
        row["scores"] for row in expected
    ]
    assert [rows[0]["label"] for rows in answer] == [row["label"] for row in expected]
    for rows in answer:
        assert [row["score"] for row in rows] == sorted((r["score"] for r in rows), reverse=True)
    assert await post(client, "/predict", inputs=PAIRS[0]) == answer[0]


@pytest.mark.parametrize("inputs", [[[text] for text in TEXTS], PAIRS])
async def test_raw_scores_are_logits(client: httpx.AsyncClient, inputs: list[list[str]]) -> None:
    raw = await post(client, "/predict", inputs=inputs, raw_scores=True)
    plain = await post(client, "/predict", inputs=inputs, raw_scores=False)
    for logits, scores in zip(raw, plain, strict=True):
        assert [row["label"] for row in logits] == [row["label"] for row in scores]
        exponentials = np.exp([row["score"] for row in logits])
        assert not np.isclose(exponentials.sum(), 1, atol=1e-3)  # they were no probabilities
        np.testing.assert_allclose(
            exponentials / exponentials.sum(), [row["score"] for row in scores], atol=1e-6
        )


async def test_similarity_is_the_cosine_of_embed(client: httpx.AsyncClient) -> None:
    rows = await embed(client, TEXTS)
    inputs = {"source_sentence": TEXTS[0], "sentences": TEXTS}
    answer = await post(client, "/similarity", inputs=inputs)
    np.testing.assert_allclose(answer, rows @ rows[0], atol=1e-6)
    assert answer[0] == pytest.approx(1, abs=1e-6)
    other = await post(client, "/similarity", inputs=inputs, model="tiny-nli")
    assert not np.allclose(answer, other)
    same = await post(client, "/similarity", inputs=inputs, parameters={"prompt_name": None})
    assert same == answer
    assert await post(client, "/similarity", inputs=inputs, parameters=None) == answer


async def test_rerank_sorts_the_cosines(client: httpx.AsyncClient) -> None:
    inputs = {"source_sentence": TEXTS[1], "sentences": TEXTS}
    cosines = await post(client, "/similarity", inputs=inputs)
    ranks = await post(client, "/rerank", query=TEXTS[1], texts=TEXTS)
    assert [rank["index"] for rank in ranks] == list(np.argsort(cosines)[::-1])
    assert [rank["score"] for rank in ranks] == sorted(cosines, reverse=True)
    assert all(set(rank) == {"index", "score"} for rank in ranks)
    assert await post(client, "/rerank", query=TEXTS[1], texts=TEXTS, raw_scores=True) == ranks
    with_text = await post(client, "/rerank", query=TEXTS[1], texts=TEXTS, return_text=True)
    assert [rank["text"] for rank in with_text] == [TEXTS[rank["index"]] for rank in ranks]


async def test_documents_are_ranked_as_tei_ranks_texts(client: httpx.AsyncClient) -> None:
    ranks = await post(client, "/rerank", query=TEXTS[1], texts=TEXTS)
    expected = [(rank["index"], rank["score"]) for rank in ranks]
    objects = [{"text": text, "title": "x"} for text in TEXTS]
    for path in ("/v1/rerank", "/v2/rerank"):
        for documents in (TEXTS, objects, [*objects[:2], *TEXTS[2:]]):
            answer = await post(client, path, query=TEXTS[1], documents=documents)
            found = [(one["index"], one["relevance_score"]) for one in answer["results"]]
            assert found == expected
            assert answer["model"] == "tiny-flat"
            assert answer["usage"]["total_tokens"] > 0
            assert answer["meta"]["api_version"]["version"] == path[2]
        best = await post(client, path, query=TEXTS[1], documents=TEXTS, top_n=2)
        assert [one["index"] for one in best["results"]] == [index for index, _ in expected[:2]]


async def test_equal_documents_keep_their_order(client: httpx.AsyncClient) -> None:
    documents = ["dog", "kids"] * 30  # numpy's default sort keeps the order of up to 16
    expected = [*range(1, 60, 2), *range(0, 60, 2)]
    for path, field in (("/v2/rerank", "documents"), ("/rerank", "texts")):
        answer = await post(client, path, query="kids", **{field: documents})
        ranks = answer["results"] if field == "documents" else answer
        assert [rank["index"] for rank in ranks] == expected


async def test_documents_are_returned_by_jinas_default_and_not_by_coheres(
    client: httpx.AsyncClient,
) -> None:
    for path, default in (("/v1/rerank", True), ("/v2/rerank", False)):
        for asked in (None, True, False):
            more = {} if asked is None else {"return_documents": asked}
            answer = await post(client, path, query="kids", documents=["dog", "kids"], **more)
            wanted = default if asked is None else asked
            texts = [one.get("document", {}).get("text") for one in answer["results"]]
            assert texts == (["kids", "dog"] if wanted else [None, None])


async def test_rank_fields_may_name_the_text(client: httpx.AsyncClient) -> None:
    body = {"query": "kids", "documents": [{"text": "dog"}, {"text": "kids"}]}
    answer = await client.post("/v1/rerank", json={**body, "rank_fields": ["text"]})
    assert "X-Ignored-Fields" not in answer.headers
    plain = await post(client, "/v1/rerank", **body)
    assert answer.json()["results"] == plain["results"]


async def test_other_fields_are_passed_over_and_long_documents_averaged(
    client: httpx.AsyncClient,
) -> None:
    documents = ["kids " * 40, "dog"]
    body = {"query": "kids", "documents": documents, "max_tokens_per_doc": 4096, "priority": 1}
    answer = await client.post("/v2/rerank", json=body)
    assert answer.status_code == 200, answer.text
    assert answer.headers["X-Ignored-Fields"] == "priority"
    assert answer.headers["X-Windows"] == "1"
    assert answer.json()["results"][0] == {"index": 0, "relevance_score": pytest.approx(1)}


@pytest.mark.parametrize("path", ["/rerank", "/rerank/"])
async def test_documents_on_teis_route_are_answered_as_jina_does(
    client: httpx.AsyncClient, path: str
) -> None:
    body = {"query": "kids", "documents": ["dog", {"text": "kids"}], "top_n": 1}
    expected = await post(client, "/v1/rerank", **body)
    found = await post(client, path, **body)
    assert {**found, "id": ""} == {**expected, "id": ""}
    both = await client.post(path, json={**body, "texts": ["kids"]})
    assert [rank["index"] for rank in both.json()] == [0]
    assert both.headers["X-Ignored-Fields"] == "documents, top_n"


@pytest.mark.parametrize("path", ["/v1/rerank", "/v2/rerank"])
async def test_documents_come_back_whole(client: httpx.AsyncClient, path: str) -> None:
    documents = [
        {"text": "dog", "id": 7, "meta": {"tags": ["a", None], "score": 0.5}},
        {"id": "x", "text": "kids"},
        "two kids",
    ]
    body = {"query": "kids", "documents": documents, "return_documents": True}
    answer = await client.post(path, json=body)
    assert "X-Ignored-Fields" not in answer.headers
    for one in answer.json()["results"]:
        sent = documents[one["index"]]
        assert one["document"] == ({"text": sent} if isinstance(sent, str) else sent)

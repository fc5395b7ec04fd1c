"""Cohere's and Jina's /v1/rerank and /v2/rerank."""

import httpx
import pytest

from tests.app.test_answers import TEXTS
from tests.app.test_tei import post

pytestmark = pytest.mark.anyio


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

"""TEI's /predict, /similarity and /rerank, against what the other routes answer; Cohere's and Jina's /v1/rerank
and /v2/rerank."""

import numpy as np
import pytest

from tests.app.posting import TEXTS, Client, ask, embed, post

pytestmark = pytest.mark.anyio
PAIRS = [[TEXTS[0], TEXTS[1]], [TEXTS[1], TEXTS[0]], [TEXTS[2], TEXTS[3]]]
ALONE = [[text] for text in TEXTS]


async def test_predict_is_classify_or_nli(client: Client) -> None:
    classified = await ask(client, "/classify", inputs=TEXTS)
    assert await ask(client, "/predict", inputs=ALONE) == classified
    for inputs in (TEXTS[0], [TEXTS[0]]):  # TEI takes a list of one for the text alone
        assert await ask(client, "/predict", inputs=inputs) == classified[0]
    pairs = [{"premise": first, "hypothesis": second} for first, second in PAIRS]
    judged = (await ask(client, "/nli", pairs=pairs))["results"]
    answer = await ask(client, "/predict", inputs=PAIRS)
    for rows, result in zip(answer, judged, strict=True):
        assert {row["label"]: row["score"] for row in rows} == result["scores"]
        assert rows[0]["label"] == result["label"]
        assert [row["score"] for row in rows] == sorted(result["scores"].values(), reverse=True)
    assert await ask(client, "/predict", inputs=PAIRS[0]) == answer[0]


@pytest.mark.parametrize("inputs", [ALONE, PAIRS])
async def test_raw_scores_are_logits(client: Client, inputs: list[list[str]]) -> None:
    raw = await ask(client, "/predict", inputs=inputs, raw_scores=True)
    plain = await ask(client, "/predict", inputs=inputs, raw_scores=False)
    for logits, scores in zip(raw, plain, strict=True):
        assert [row["label"] for row in logits] == [row["label"] for row in scores]
        powers = np.exp([row["score"] for row in logits])
        assert not np.isclose(powers.sum(), 1, atol=1e-3)  # they were no probabilities
        expected = [row["score"] for row in scores]
        np.testing.assert_allclose(powers / powers.sum(), expected, atol=1e-6)


async def test_similarity_is_the_cosine_of_embed_which_rerank_sorts(client: Client) -> None:
    rows = await embed(client, TEXTS)
    inputs = {"source_sentence": TEXTS[1], "sentences": TEXTS}
    cosines = await ask(client, "/similarity", inputs=inputs)
    np.testing.assert_allclose(cosines, rows @ rows[1], atol=1e-6)
    others = await ask(client, "/similarity", inputs=inputs, model="tiny-nli")
    assert not np.allclose(cosines, others)
    assert await ask(client, "/similarity", inputs=inputs, parameters=None) == cosines
    body = {"query": TEXTS[1], "texts": TEXTS}
    ranks = await ask(client, "/rerank", **body)
    order = list(np.argsort(cosines)[::-1])
    assert ranks == [{"index": i, "score": cosines[i]} for i in order]
    assert await ask(client, "/rerank", **body, raw_scores=True) == ranks
    with_text = await ask(client, "/rerank", **body, return_text=True)
    assert [rank["text"] for rank in with_text] == [TEXTS[i] for i in order]


@pytest.mark.parametrize("path", ["/v1/rerank", "/v2/rerank"])
async def test_documents_are_ranked_as_tei_ranks_texts(client: Client, path: str) -> None:
    ranks = await ask(client, "/rerank", query=TEXTS[1], texts=TEXTS)
    expected = [(rank["index"], rank["score"]) for rank in ranks]
    objects = [{"text": text, "title": "x"} for text in TEXTS]
    for documents in (TEXTS, objects, [*objects[:2], *TEXTS[2:]]):
        answer = await ask(client, path, query=TEXTS[1], documents=documents)
        assert [(row["index"], row["relevance_score"]) for row in answer["results"]] == expected
        assert answer["model"] == "tiny-flat"
        assert answer["usage"]["total_tokens"] > 0
        assert answer["meta"]["api_version"]["version"] == path[2]
    best = await ask(client, path, query=TEXTS[1], documents=TEXTS, top_n=2)
    assert [row["index"] for row in best["results"]] == [index for index, _ in expected[:2]]


async def test_equal_documents_keep_their_order(client: Client) -> None:
    documents = ["dog", "kids"] * 30  # numpy's default sort keeps the order of up to 16
    expected = [*range(1, 60, 2), *range(0, 60, 2)]
    answer = await ask(client, "/v2/rerank", query="kids", documents=documents)
    assert [rank["index"] for rank in answer["results"]] == expected
    answer = await ask(client, "/rerank", query="kids", texts=documents)
    assert [rank["index"] for rank in answer] == expected


@pytest.mark.parametrize(("path", "default"), [("/v1/rerank", True), ("/v2/rerank", False)])
async def test_documents_come_back_whole_by_jinas_default_and_not_by_coheres(
    client: Client, path: str, default: bool
) -> None:
    documents = [
        {"text": "dog", "id": 7, "meta": {"tags": ["a", None], "score": 0.5}},
        {"id": "x", "text": "kids"},
        "two kids",
    ]
    for wanted in (None, True, False):
        more = {} if wanted is None else {"return_documents": wanted}
        answer = await post(client, path, query="kids", documents=documents, **more)
        assert "X-Ignored-Fields" not in answer.headers
        for row in answer.json()["results"]:
            sent = documents[row["index"]]
            whole = {"text": sent} if isinstance(sent, str) else sent
            returned = default if wanted is None else wanted
            assert row.get("document") == (whole if returned else None)


async def test_other_fields_of_rerank(client: Client) -> None:
    """The text may be named; unknown fields are passed over, and long documents averaged."""
    body = {"query": "kids", "documents": [{"text": "dog"}, {"text": "kids"}]}
    answer = await post(client, "/v1/rerank", **body, rank_fields=["text"])
    assert "X-Ignored-Fields" not in answer.headers
    assert answer.json()["results"] == (await ask(client, "/v1/rerank", **body))["results"]
    more = {"max_tokens_per_doc": 4096, "priority": 1}
    answer = await post(client, "/v2/rerank", query="kids", documents=["kids " * 40, "dog"], **more)
    assert answer.headers["X-Ignored-Fields"] == "priority"
    assert answer.headers["X-Windows"] == "1"
    assert answer.json()["results"][0] == {"index": 0, "relevance_score": pytest.approx(1)}


async def test_documents_on_teis_route_are_answered_as_jina_does(client: Client) -> None:
    body = {"query": "kids", "documents": ["dog", {"text": "kids"}], "top_n": 1}
    expected = await ask(client, "/v1/rerank", **body)
    for unset in ({}, {"texts": None}):
        assert {**await ask(client, "/rerank", **body, **unset), "id": ""} == {**expected, "id": ""}
    both = await post(client, "/rerank", **body, texts=["kids"])
    assert [rank["index"] for rank in both.json()] == [0]
    assert both.headers["X-Ignored-Fields"] == "documents, top_n"

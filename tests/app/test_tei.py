"""TEI's /predict, /similarity and /rerank, against what the other routes answer."""

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


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/predict", {"inputs": ["kids " * 17, "kids"]}),
        ("/rerank", {"query": "kids " * 17, "texts": ["kids"]}),
        ("/similarity", {"inputs": {"source_sentence": "kids " * 17, "sentences": ["kids"]}}),
    ],
)
async def test_truncate_where_tei_has_it(
    client: httpx.AsyncClient, path: str, body: dict[str, Any]
) -> None:
    field = {"truncate": True}
    more = {"parameters": field} if path == "/similarity" else field
    answer = await client.post(path, json={**body, **more})
    assert (answer.status_code, answer.headers["X-Truncated"]) == (200, "1")

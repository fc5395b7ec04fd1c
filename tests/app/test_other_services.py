"""The routes of other services: OpenAI's and Cohere's with their own clients against a real process; text-embeddings-
inference's, Cohere's and Jina's /rerank, and the Open Inference Protocol by hand, against what our routes answer.

docs/clients.md says what other clients made of them.
"""

from collections.abc import Iterator
from typing import Any

import cohere
import httpx
import numpy as np
import openai
import pytest
import tiktoken

from heedful.app.routes.compat import token_ids
from tests.app.conftest import KEY, Serve
from tests.app.posting import TEXTS, Client, ask, bearer, check, embed, post
from tests.process import PATIENCE, Process

pytestmark = pytest.mark.anyio
FLAT, NLI = "/v2/models/tiny-flat", "/v2/models/tiny-nli"
PAIRS = [[TEXTS[0], TEXTS[1]], [TEXTS[1], TEXTS[0]], [TEXTS[2], TEXTS[3]]]
ALONE = [[text] for text in TEXTS]


@pytest.fixture(scope="module")
def official(process: Process) -> Iterator[openai.OpenAI]:
    base = f"{process.url()}/v1"
    with openai.OpenAI(base_url=base, api_key=KEY, max_retries=0, timeout=PATIENCE) as client:
        yield client


def test_openai_reads_floats_and_base64_alike(official: openai.OpenAI) -> None:
    """The client requests base64 by default, and decodes it."""
    coded = official.embeddings.create(input=TEXTS, model="tiny-flat")
    floats = official.embeddings.create(input=TEXTS, model="tiny-flat", encoding_format="float")
    for entry, other in zip(coded.data, floats.data, strict=True):
        vectors = np.array([entry.embedding, other.embedding], np.float32)
        np.testing.assert_array_equal(*vectors)
    assert [entry.index for entry in coded.data] == [0, 1, 2, 3, 4]
    assert coded.model == "tiny-flat"
    assert coded.usage.prompt_tokens == coded.usage.total_tokens == 27
    short = official.embeddings.create(input=TEXTS[0], model="tiny-nli", dimensions=3, user="me")
    assert [len(entry.embedding) for entry in short.data] == [3]
    assert {model.id for model in official.models.list()} >= {"tiny-flat", "tiny-nli"}


def test_openai_raises_its_own_errors(official: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="tiny-flat") as unknown:
        official.embeddings.create(input="a", model="text-embedding-3-small")
    error = unknown.value
    assert (error.code, error.param) == ("model_not_found", "model")
    assert error.type == "invalid_request_error"
    with pytest.raises(openai.UnprocessableEntityError) as wrong:
        official.embeddings.create(input=["a", ""], model="tiny-flat")
    assert wrong.value.param == "input[1]"
    with pytest.raises(openai.AuthenticationError) as shut:
        official.with_options(api_key="another").embeddings.create(input="a", model="tiny-flat")
    assert shut.value.type == "authentication_error"
    assert shut.value.request_id == shut.value.response.headers["X-Request-Id"]


def test_cohere_embeds_in_several_types(process: Process) -> None:
    """A long text has the mean of its windows unless the client wants it cut."""
    url, long = process.url(), "the dog is not good " * 9
    texts, types = [*TEXTS, long], ["float", "ubinary"]
    options: dict[str, Any] = {"model": "tiny-flat", "input_type": "search_document"}
    with cohere.ClientV2(KEY, base_url=url, timeout=PATIENCE) as client:
        answer = client.embed(texts=texts, embedding_types=types, output_dimension=8, **options)
        cut = client.embed(texts=[long], truncate="END", **options)
    floats, bits = np.array(answer.embeddings.float_), np.array(answer.embeddings.ubinary)
    np.testing.assert_array_equal(np.unpackbits(bits.astype(np.uint8), axis=1), floats > 0)
    assert answer.texts == texts
    assert answer.meta is not None
    assert answer.meta.billed_units is not None
    body = {"inputs": texts, "model": "tiny-flat", "dimensions": 8, "long": "mean"}
    rows = httpx.post(f"{url}/embed", json=body, headers=bearer(KEY), timeout=PATIENCE).json()
    np.testing.assert_allclose(floats, rows, atol=1e-5)
    assert not np.allclose(floats[-1], np.array(cut.embeddings.float_)[0, :8], atol=1e-3)


async def test_ids_are_embedded_as_their_texts(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """tiktoken decodes them, here with an encoding of bytes: cl100k_base would have to be fetched; `make clients`
    tests that."""
    ranks = {bytes([value]): value for value in range(256)}
    small = tiktoken.Encoding(
        "cl100k_base", pat_str=r"\S+|\s+", mergeable_ranks=ranks, special_tokens={}
    )
    monkeypatch.setitem(tiktoken.registry.ENCODINGS, "cl100k_base", small)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "unused")
    token_ids._encoding.cache_clear()
    rows = await embed(client, TEXTS, model="tiny-flat")
    ids = [list(text.encode()) for text in TEXTS]
    for value, expected in ((ids, rows), (ids[0], rows[:1])):
        data = (await ask(client, "/v1/embeddings", input=value, model="tiny-flat"))["data"]
        np.testing.assert_allclose([row["embedding"] for row in data], expected, atol=1e-6)
    for wrong, code, param in (
        ([[107], [300]], "invalid_input", "input[1]"),
        ([-1], "invalid_input", "input"),
        ([2**40], "invalid_input", "input"),
        ([107, "kids"], "invalid_type", "input[1]"),
        ([[107], "kids"], "invalid_type", "input[1]"),
        ([[]], "invalid_input", "input[0]"),
    ):
        answer = await client.post("/v1/embeddings", json={"input": wrong, "model": "tiny-flat"})
        check(answer, 422, code, param)


async def test_without_the_encodings_file_ids_are_refused_with_the_remedy(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    token_ids._encoding.cache_clear()
    for ids in ([9906, 1917], [[9906], [1917]]):
        answer = await client.post("/v1/embeddings", json={"input": ids, "model": "tiny-flat"})
        message = check(answer, 422, "unsupported", "input")["message"]
        assert "check_embedding_ctx_length=False" in message
        assert "TIKTOKEN_CACHE_DIR" in message


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


async def test_similarity_is_the_cosine_of_embed_which_rerank_sorts(client: Client) -> None:
    rows = await embed(client, TEXTS)
    inputs = {"source_sentence": TEXTS[1], "sentences": TEXTS}
    cosines = await ask(client, "/similarity", inputs=inputs)
    np.testing.assert_allclose(cosines, rows @ rows[1], atol=1e-6)
    others = await ask(client, "/similarity", inputs=inputs, model="tiny-nli")
    assert not np.allclose(cosines, others)
    body = {"query": TEXTS[1], "texts": TEXTS}
    ranks = await ask(client, "/rerank", **body)
    order = list(np.argsort(cosines)[::-1])
    assert ranks == [{"index": i, "score": cosines[i]} for i in order]
    assert await ask(client, "/rerank", **body, raw_scores=True) == ranks
    with_text = await ask(client, "/rerank", **body, return_text=True)
    assert [rank["text"] for rank in with_text] == [TEXTS[i] for i in order]


@pytest.mark.parametrize(("path", "returned"), [("/v1/rerank", True), ("/v2/rerank", False)])
async def test_documents_are_ranked_as_tei_ranks_texts(
    client: Client, path: str, returned: bool
) -> None:
    """They come back whole by Jina's default, and not by Cohere's."""
    ranks = await ask(client, "/rerank", query=TEXTS[1], texts=TEXTS)
    expected = [(rank["index"], rank["score"]) for rank in ranks]
    objects = [{"text": text, "id": 7, "meta": {"tags": ["a", None]}} for text in TEXTS]
    documents = [*objects[:2], *TEXTS[2:]]
    for wanted in (None, True, False):
        more = {} if wanted is None else {"return_documents": wanted}
        answer = await post(client, path, query=TEXTS[1], documents=documents, **more)
        assert "X-Ignored-Fields" not in answer.headers
        found = answer.json()
        assert [(row["index"], row["relevance_score"]) for row in found["results"]] == expected
        for row in found["results"]:
            sent = documents[row["index"]]
            whole = {"text": sent} if isinstance(sent, str) else sent
            given = returned if wanted is None else wanted
            assert row.get("document") == (whole if given else None)
    assert found["model"] == "tiny-flat"
    assert found["usage"]["total_tokens"] > 0
    assert found["meta"]["api_version"]["version"] == path[2]
    best = await ask(client, path, query=TEXTS[1], documents=TEXTS, top_n=2)
    assert [row["index"] for row in best["results"]] == [index for index, _ in expected[:2]]


async def test_other_fields_of_rerank(client: Client) -> None:
    """The text may be named; unknown fields are passed over, and long documents averaged. Documents on TEI's route
    are answered as Jina does."""
    body = {"query": "kids", "documents": [{"text": "dog"}, {"text": "kids"}], "top_n": 1}
    answer = await post(client, "/v1/rerank", **body, rank_fields=["text"])
    assert "X-Ignored-Fields" not in answer.headers
    plain = await ask(client, "/v1/rerank", **body)
    assert answer.json()["results"] == plain["results"]
    for unset in ({}, {"texts": None}):
        assert {**await ask(client, "/rerank", **body, **unset), "id": ""} == {**plain, "id": ""}
    both = await post(client, "/rerank", **body, texts=["kids"])
    assert [rank["index"] for rank in both.json()] == [0]
    assert both.headers["X-Ignored-Fields"] == "documents, top_n"
    more = {"max_tokens_per_doc": 4096, "priority": 1}
    answer = await post(client, "/v2/rerank", query="kids", documents=["kids " * 40, "dog"], **more)
    assert answer.headers["X-Ignored-Fields"] == "priority"
    assert answer.headers["X-Windows"] == "1"
    assert answer.json()["results"][0] == {"index": 0, "relevance_score": pytest.approx(1)}


def tensor(name: str, data: list[Any]) -> dict[str, Any]:
    return {"name": name, "shape": [len(data)], "datatype": "BYTES", "data": data}


async def infer(client: Client, model: str, *inputs: dict[str, Any], **more: Any) -> dict[str, Any]:
    answer = await ask(client, f"/v2/models/{model}/infer", inputs=list(inputs), **more)
    assert (answer["model_name"], answer.get("id")) == (model, more.get("id"))
    for output in answer["outputs"]:
        assert int(np.prod(output["shape"])) == len(output["data"])
    outputs = answer["outputs"]
    return {tensor["name"]: np.reshape(tensor["data"], tensor["shape"]) for tensor in outputs}


async def test_tensors_of_an_embedding_model(client: Client) -> None:
    metadata = (await client.get(FLAT)).json()
    assert metadata["inputs"] == [{"name": "text", "datatype": "BYTES", "shape": [-1]}]
    assert metadata["outputs"] == [{"name": "embedding", "datatype": "FP32", "shape": [-1, 8]}]
    outputs = await infer(client, "tiny-flat", tensor("text", TEXTS), id="mine")
    assert list(outputs) == ["embedding"]
    np.testing.assert_allclose(outputs["embedding"], await embed(client, TEXTS), atol=1e-6)
    nested = await infer(client, "tiny-flat", tensor("text", ALONE))
    np.testing.assert_array_equal(nested["embedding"], outputs["embedding"])
    body = {"inputs": [tensor("text", ["kids " * 40])]}
    for field, value, header in (("truncate", True, "X-Truncated"), ("long", "mean", "X-Windows")):
        answer = await post(client, f"{FLAT}/infer", **body, parameters={field: value})
        assert answer.headers[header] == "1"


async def test_tensors_of_classifiers_and_of_models_of_pairs(client: Client) -> None:
    metadata = (await client.get("/v2/models/tiny-sst2")).json()
    assert [output["name"] for output in metadata["outputs"]] == ["probabilities", "label"]
    texts = tensor("text", TEXTS)
    outputs = await infer(client, "tiny-sst2", texts)
    best = [ranked[0] for ranked in await ask(client, "/classify", inputs=TEXTS)]
    assert outputs["label"].tolist() == [row["label"] for row in best]
    scores = [row["score"] for row in best]
    np.testing.assert_allclose(outputs["probabilities"].max(axis=1), scores, atol=1e-6)
    assert list(await infer(client, "tiny-sst2", texts, outputs=[{"name": "label"}])) == ["label"]
    assert list(await infer(client, "tiny-sst2", texts, outputs=[])) == list(outputs)
    firsts, seconds = TEXTS[:2], TEXTS[2:4]
    premises, hypotheses = tensor("premise", firsts), tensor("hypothesis", seconds)
    outputs = await infer(client, "tiny-nli", hypotheses, premises)
    pairs = [{"premise": a, "hypothesis": b} for a, b in zip(firsts, seconds, strict=True)]
    judged = (await ask(client, "/nli", pairs=pairs))["results"]
    assert outputs["label"].tolist() == [result["label"] for result in judged]
    related = await infer(client, "tiny-related", tensor("a", firsts), tensor("b", seconds))
    pairs = [{"a": a, "b": b} for a, b in zip(firsts, seconds, strict=True)]
    scores = (await ask(client, "/relatedness", pairs=pairs))["scores"]
    np.testing.assert_allclose(related["score"], scores, atol=1e-6)


async def test_tensors_in_bytes_are_refused(client: Client) -> None:
    """Triton's binary extension; who asks for outputs in bytes gets JSON, which its clients read too."""
    body = {"inputs": [tensor("text", TEXTS)], "parameters": {"binary_data_output": True}}
    headers = {"Inference-Header-Content-Length": "9"}
    refused = await client.post(f"{FLAT}/infer", json=body, headers=headers)
    assert "send them in the JSON as data" in check(refused, 400, "wrong_content_type")["message"]
    answer = await post(client, f"{FLAT}/infer", **body)
    assert answer.headers["X-Ignored-Fields"] == "parameters.binary_data_output"
    assert len(answer.json()["outputs"][0]["data"]) == 8 * len(TEXTS)


async def test_versions(client: Client) -> None:
    [version] = (await client.get(NLI)).json()["versions"]
    named, other = (f"{NLI}/versions/{number}" for number in (version, "1"))
    for path in ("", "/ready"):
        assert (await client.get(named + path)).json() == (await client.get(NLI + path)).json()
        check(await client.get(other + path), 404, "model_not_found", "version")
    body = {"inputs": [tensor("premise", TEXTS[:2]), tensor("hypothesis", TEXTS[2:4])]}
    answer = await ask(client, f"{named}/infer", **body)
    assert answer["model_version"] == version
    assert answer == await ask(client, f"{NLI}/infer", **body)
    refused = await client.post(f"{other}/infer", json=body)
    assert version in check(refused, 404, "model_not_found", "version")["message"]


async def test_readiness(serve: Serve, client: Client) -> None:
    """tests/app/test_openapi.py has the refusals of the routes that are documented."""
    assert (await client.get("/v2")).json()["name"] == "heedful"
    assert (await client.get("/v2/health/ready")).json() == {"ready": True}
    assert (await client.get(f"{NLI}/ready")).json() == {"name": "tiny-nli", "ready": True}
    check(await client.post("/v2/models/bert", json={}), 405, "method_not_allowed")
    check(await client.post("/v2/repository/index", json={}), 404, "route_not_found")
    async with serve(start=False, api_key=KEY) as idle:  # a probe needs no key
        assert (await idle.get("/v2/health/live")).json() == {"live": True}
        check(await idle.get("/v2/health/ready"), 503, "not_ready")
        check(await idle.post("/models/reload", headers=bearer(KEY)), 503, "unavailable")

"""What clients of other services also send: unknown fields, other names, slashes, codings."""

import gzip
import json
import re
import shutil
import zlib
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import httpx
import numpy as np
import pytest

from heedful.runtime.errors import StartupError
from tests.app.conftest import KEY, Serve
from tests.app.test_answers import TEXTS, embed
from tests.app.test_errors import JSON, check

pytestmark = pytest.mark.anyio


async def post(client: httpx.AsyncClient, path: str, **body: Any) -> httpx.Response:
    answer = await client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/", {"inputs": "kids"}),
        ("/embed", {"inputs": "kids"}),
        ("/tokenize", {"inputs": "kids"}),
        ("/predict", {"inputs": "kids"}),
        ("/rerank", {"query": "kids", "texts": ["dog"]}),
        ("/similarity", {"inputs": {"source_sentence": "kids", "sentences": ["dog"]}}),
        ("/v1/embeddings", {"input": "kids", "model": "tiny-flat"}),
    ],
)
async def test_unknown_fields_are_passed_over_and_named(
    client: httpx.AsyncClient, path: str, body: dict[str, Any]
) -> None:
    plain = await post(client, path, **body)
    assert "X-Ignored-Fields" not in plain.headers
    answer = await post(client, path, **body, colour="red", größe=[1])
    assert answer.headers["X-Ignored-Fields"] == "colour, gr%C3%B6%C3%9Fe"
    assert answer.json() == plain.json()


async def test_names_of_unknown_fields_are_harmless(client: httpx.AsyncClient) -> None:
    names = {"a\r\nX-Evil: 1": 1, "b" * 1000: 2, **{f"c{i}": 3 for i in range(100)}}
    answer = await post(client, "/embed", inputs="kids", **names)
    assert "X-Evil" not in answer.headers
    named = answer.headers["X-Ignored-Fields"].split(", ")
    assert named[:3] == ["a%0D%0AX-Evil%3A 1", "b" * 64, "c0"]
    assert len(named) == 20
    nested = await post(
        client,
        "/similarity",
        inputs={"source_sentence": "kids", "sentences": ["dog"], "size": 1},
        parameters={"speed": 2},
    )
    assert nested.headers["X-Ignored-Fields"] == "inputs.size, parameters.speed"
    documents = ["dog", *({"text": "dog", f"{i}": i, "size": i} for i in (7, 8))]
    listed = await post(client, "/v1/rerank", query="kids", documents=documents, speed=2)
    assert listed.headers["X-Ignored-Fields"] == "speed"  # the others are given back
    body = b'{"inputs": "kids", "\\ud800": 1}'
    refused = await client.post("/embed", content=body, headers=JSON)
    check(refused, 422, "invalid_value", refused.json()["error"]["param"])


@pytest.mark.parametrize("path", ["/classify", "/predict", "/"])
async def test_the_hubs_text_classification(client: httpx.AsyncClient, path: str) -> None:
    plain = (await post(client, "/classify", inputs=TEXTS[0])).json()
    answer = (await post(client, path, inputs=TEXTS[0], parameters={}, options={"x": 1})).json()
    assert answer == [plain]  # as the hub answers to one text
    one = (await post(client, path, inputs=TEXTS[0], parameters={"top_k": 1})).json()
    assert one == [plain[:1]]
    logits = (
        await post(client, path, inputs=TEXTS[0], parameters={"function_to_apply": "none"})
    ).json()[0]
    by_label = {row["label"]: row["score"] for row in logits}
    exponentials = np.exp(list(by_label.values()))
    for row in plain:
        expected = np.exp(by_label[row["label"]]) / exponentials.sum()
        assert row["score"] == pytest.approx(expected, abs=1e-6)
    sigmoid = (
        await post(client, path, inputs=TEXTS[0], parameters={"function_to_apply": "sigmoid"})
    ).json()[0]
    for row in sigmoid:
        assert row["score"] == pytest.approx(1 / (1 + np.exp(-by_label[row["label"]])), abs=1e-6)


async def test_the_root_tells_the_hubs_tasks_apart(client: httpx.AsyncClient) -> None:
    inputs = {"source_sentence": "kids", "sentences": ["dog", "kids"]}
    parameters: list[dict[str, Any]] = [{}, {"parameters": {}}]
    for more in parameters:
        answer = await post(client, "/", inputs=inputs, **more)
        assert answer.json() == (await post(client, "/similarity", inputs=inputs)).json()
    without = await post(client, "/", inputs=TEXTS, parameters=None)
    np.testing.assert_array_equal(without.json(), await embed(client, TEXTS))


async def test_slashes_too_many(client: httpx.AsyncClient) -> None:
    rows = await embed(client, TEXTS)
    for path in ("/embed/", "//embed", "///embed//"):
        found = await post(client, f"http://heedful{path}", inputs=TEXTS)
        np.testing.assert_array_equal(found.json(), rows)
    models = (await client.get("/v1/models")).json()
    for path in ("/v1/models/", "//v1/models", "/v1//models/"):
        assert (await client.get(f"http://heedful{path}")).json() == models
    assert (await client.get("/v1//models//tiny-flat")).json()["id"] == "tiny-flat"
    assert 'route="/embed"' in (await client.get("/metrics/")).text


@pytest.mark.parametrize(
    ("coding", "encode"),
    [
        ("gzip", gzip.compress),
        ("x-gzip", lambda body: gzip.compress(body[:9]) + gzip.compress(body[9:])),
        ("deflate", zlib.compress),  # one of tritonclient's two
        ("identity", bytes),
    ],
)
async def test_a_body_may_be_compressed(
    client: httpx.AsyncClient, coding: str, encode: Any
) -> None:
    body = encode(json.dumps({"inputs": TEXTS}).encode())
    answer = await client.post("/embed", content=body, headers={**JSON, "Content-Encoding": coding})
    np.testing.assert_array_equal(answer.json(), await embed(client, TEXTS))


async def test_codings_that_are_refused(serve: Serve) -> None:
    async with serve(start=False, max_body_bytes=1000) as idle:
        for coding, body, status, code in (
            ("br", b"{}", 400, "wrong_content_encoding"),
            ("gzip", b"{}", 400, "wrong_content_encoding"),
            ("gzip", gzip.compress(b"{}", mtime=0)[:-4], 400, "wrong_content_encoding"),
            ("zstd", b"{}", 400, "wrong_content_encoding"),
            ("deflate", b"{}", 400, "wrong_content_encoding"),
            ("deflate", zlib.compress(b"{}")[:-4], 400, "wrong_content_encoding"),
            ("deflate", zlib.compress(b"{}") + b"{}", 400, "wrong_content_encoding"),
            ("gzip", gzip.compress(b" " * 1001, mtime=0), 413, "body_too_large"),
            ("deflate", zlib.compress(b" " * 1001), 413, "body_too_large"),
            ("deflate", zlib.compress(b" " * 1_000_000), 413, "body_too_large"),
            ("deflate", zlib.compress(b" " * 999 + b"1"), 422, "invalid_type"),
        ):
            headers = {**JSON, "Content-Encoding": coding}
            check(await idle.post("/embed", content=body, headers=headers), status, code)


async def test_aliases(serve: Serve) -> None:
    async with serve(aliases={"text-embedding-3-small": "tiny-flat"}) as client:
        rows = await embed(client, TEXTS, model="tiny-flat")
        np.testing.assert_array_equal(
            await embed(client, TEXTS, model="text-embedding-3-small"), rows
        )
        listed = [model["id"] for model in (await client.get("/v1/models")).json()["data"]]
        assert listed.count("text-embedding-3-small") == 1
        one = (await client.get("/v1/models/text-embedding-3-small")).json()
        assert (one["id"], one["object"]) == ("text-embedding-3-small", "model")
        check(await client.get("/v1/models/bert"), 404, "model_not_found", "model")
        page = (await client.get("/metrics")).text
        assert 'route="/v1/models/{model}"' in page
        assert "bert" not in page


async def test_an_alias_with_a_slash_is_found(serve: Serve) -> None:
    """Names of the Hugging Face hub have one, which OpenAI's client sends as %2F."""
    async with serve(aliases={"BAAI/bge-small-en-v1.5": "tiny-flat"}) as client:
        for path in (
            "BAAI%2Fbge-small-en-v1.5",
            "BAAI/bge-small-en-v1.5",
            "BAAI/bge-small-en-v1.5/",
        ):
            answer = await client.get(f"/v1/models/{path}")
            assert answer.status_code == 200, answer.text
            assert answer.json()["id"] == "BAAI/bge-small-en-v1.5"
        assert (await client.get("/v1/models/tiny-flat/")).json()["id"] == "tiny-flat"
        check(await client.get("/v1/models/BAAI/bge-m3"), 404, "model_not_found", "model")
        assert 'route="/v1/models/{model}"' in (await client.get("/metrics")).text


async def test_a_models_own_name_is_no_alias(serve: Serve, models: Path, tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="HEEDFUL_ALIASES: tiny-nli=tiny-flat: tiny-nli is a"):
        async with serve(aliases={"tiny-nli": "tiny-flat"}):
            pass
    folder = tmp_path / "models"
    shutil.copytree(models, folder, ignore=shutil.ignore_patterns("tiny-nli"))
    aliases = {"tiny-nli": "tiny-flat"}
    async with serve(models=folder, api_key=KEY, aliases=aliases) as client:
        client.headers["Authorization"] = f"Bearer {KEY}"
        rows = await embed(client, TEXTS, model="tiny-nli")
        shutil.copytree(models / "tiny-nli", folder / "tiny-nli")
        assert (await client.post("/models/reload")).json()["loaded"] == ["tiny-nli"]
        assert not np.allclose(await embed(client, TEXTS, model="tiny-nli"), rows)
        listed = [model["id"] for model in (await client.get("/v1/models")).json()["data"]]
        assert listed.count("tiny-nli") == 1


async def test_a_long_text_has_the_mean_of_its_windows(client: httpx.AsyncClient) -> None:
    document = "two kids wash their hands " * 20
    answer = await post(client, "/v1/embeddings", input=["kids", document], model="tiny-flat")
    assert answer.headers["X-Windows"] == "1"
    assert "X-Truncated" not in answer.headers
    rows = [row["embedding"] for row in answer.json()["data"]]
    assert answer.json()["usage"]["prompt_tokens"] == 101
    same = await post(client, "/embed", inputs=["kids", document], model="tiny-flat", long="mean")
    np.testing.assert_array_equal(same.json(), rows)
    assert same.headers["X-Windows"] == "1"
    cut = await post(client, "/v1/embeddings", input=document, model="tiny-flat", truncate=True)
    assert cut.headers["X-Truncated"] == "1"
    check(await client.post("/embed", json={"inputs": document}), 422, "input_too_long", "inputs")


async def test_truncate_may_be_the_operators(serve: Serve) -> None:
    document = "two kids wash their hands " * 20
    async with serve(truncate=True) as client:
        first = " ".join(document.split()[:16])
        expected = await embed(client, first, model="tiny-flat")
        for answer in (
            await post(client, "/embed", inputs=document, model="tiny-flat"),
            await post(client, "/embed", inputs=document, model="tiny-flat", truncate=None),
        ):
            np.testing.assert_array_equal(answer.json(), expected)
            assert answer.headers["X-Truncated"] == "1"
        answer = await post(client, "/v1/embeddings", input=document, model="tiny-flat")
        np.testing.assert_array_equal([answer.json()["data"][0]["embedding"]], expected)
        refused = await client.post("/embed", json={"inputs": document, "truncate": False})
        check(refused, 422, "input_too_long", "inputs")
        mean = await post(client, "/embed", inputs=document, model="tiny-flat", long="mean")
        assert mean.headers["X-Windows"] == "1"


async def test_a_warning_where_the_answer_means_little(client: httpx.AsyncClient) -> None:
    assert "X-Warning" not in (await post(client, "/embed", inputs=TEXTS)).headers
    warned = await post(client, "/embed", inputs=["Привет мир", "two kids"], model="tiny-flat")
    assert warned.headers["X-Warning"].startswith("1 of 2 inputs ")
    assert "tiny-flat" in warned.headers["X-Warning"]


async def test_generated_clients_stay_below_a_proxys_path(client: httpx.AsyncClient) -> None:
    """By OpenAPI a server's address is relative to the document, and without any it is "/"."""
    document = (await client.get("/openapi.json")).json()
    [server] = document["servers"]
    for at, root in (
        ("https://a.org/openapi.json", ""),
        ("https://a.org/nlp/openapi.json", "/nlp"),
    ):
        assert urljoin(at, server["url"]).rstrip("/") == f"https://a.org{root}"


@pytest.mark.parametrize("path", ["/docs", "/docs/", "//docs"])
async def test_the_documentation_is_whole_below_a_proxys_path(
    client: httpx.AsyncClient, path: str
) -> None:
    """The proxy takes its own path away."""
    answer = await client.get(f"http://heedful{path}")
    page = answer.text
    assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'; ")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    links = re.findall(r"(?:href|src)=\"(?!data:)([^\"]+)|url: '([^']+)'", page)
    assert len(links) == 3
    for link in ("".join(link) for link in links):
        found = urljoin(f"https://a.org/nlp{path}", link)
        assert found.startswith("https://a.org/nlp/")
        answer = await client.get(found.replace("https://a.org/nlp", "http://heedful"))
        assert answer.status_code == 200, found


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "cp1252"])
async def test_a_body_of_another_encoding_is_named(
    client: httpx.AsyncClient, encoding: str
) -> None:
    body = json.dumps({"inputs": "café"}, ensure_ascii=False).encode(encoding)
    answer = await client.post("/embed", content=body, headers=JSON)
    check(answer, 400, "invalid_json")
    assert "the body is not UTF-8 (byte 0x" in answer.json()["error"]["message"]


async def test_probes_that_succeed_are_no_requests_of_interest(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "heedful.access")
    async with serve(start=False) as idle:
        for path in ("/health", "/metrics", "/v2/health/live", "/ready", "/v2/health/ready"):
            await idle.get(path)
        await idle.get("/models")
    lines = [record for record in caplog.records if record.name == "heedful.access"]
    found = [(vars(line)["route"], vars(line)["status"], line.levelname) for line in lines]
    assert found == [
        ("/health", 200, "DEBUG"),
        ("/metrics", 200, "DEBUG"),
        ("/v2/health/live", 200, "DEBUG"),
        ("/ready", 503, "INFO"),
        ("/v2/health/ready", 503, "INFO"),
        ("/models", 503, "INFO"),
    ]

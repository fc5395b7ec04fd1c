"""Requests that clients of other services send: unknown fields, other names, slashes, the hub's tasks, long texts."""

import re
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import numpy as np
import pytest

from heedful.runtime.errors import StartupError
from tests.app.bodies import bodies
from tests.app.conftest import KEY, Serve
from tests.app.posting import JSON, TEXTS, Client, ask, bearer, check, embed, metrics, post

pytestmark = pytest.mark.anyio
SIMILARITY = {"source_sentence": "kids", "sentences": ["dog", "kids"]}
PASSING_OVER = ("/", "/embed", "/tokenize", "/predict", "/rerank", "/similarity", "/v1/embeddings")


@pytest.mark.parametrize("path", PASSING_OVER)
async def test_unknown_fields_are_passed_over_and_named(client: Client, path: str) -> None:
    body = bodies("kids")[path]
    plain = await post(client, path, **body)
    assert "X-Ignored-Fields" not in plain.headers
    answer = await post(client, path, **body, colour="red", größe=[1])
    assert answer.headers["X-Ignored-Fields"] == "colour, gr%C3%B6%C3%9Fe"
    assert answer.json() == plain.json()


async def test_names_of_unknown_fields_are_harmless(client: Client) -> None:
    names = {"a\r\nX-Evil: 1": 1, "b" * 1000: 2, **{f"c{i}": 3 for i in range(100)}}
    answer = await post(client, "/embed", inputs="kids", **names)
    assert "X-Evil" not in answer.headers
    named = answer.headers["X-Ignored-Fields"].split(", ")
    assert named[:3] == ["a%0D%0AX-Evil%3A 1", "b" * 64, "c0"]
    assert len(named) == 20
    inputs = {**SIMILARITY, "size": 1}
    nested = await post(client, "/similarity", inputs=inputs, parameters={"speed": 2})
    assert nested.headers["X-Ignored-Fields"] == "inputs.size, parameters.speed"
    documents = ["dog", *({"text": "dog", f"{i}": i, "size": i} for i in (7, 8))]
    listed = await post(client, "/v1/rerank", query="kids", documents=documents, speed=2)
    assert listed.headers["X-Ignored-Fields"] == "speed"  # the others are given back
    body = b'{"inputs": "kids", "\\ud800": 1}'
    refused = await client.post("/embed", content=body, headers=JSON)
    check(refused, 422, "invalid_value", refused.json()["error"]["param"])


@pytest.mark.parametrize("path", ["/classify", "/predict", "/"])
async def test_the_hubs_text_classification(client: Client, path: str) -> None:
    plain = await ask(client, "/classify", inputs=TEXTS[0])

    async def hub(**parameters: Any) -> Any:
        return await ask(client, path, inputs=TEXTS[0], parameters=parameters, options={"x": 1})

    assert await hub() == [plain]  # as the hub answers to one text
    assert await hub(top_k=1) == [plain[:1]]
    raw = await ask(client, "/predict", inputs=[[TEXTS[0]]], raw_scores=True)
    assert await hub(function_to_apply="none") == raw
    logits = {row["label"]: row["score"] for row in raw[0]}
    for row in (await hub(function_to_apply="sigmoid"))[0]:
        assert row["score"] == pytest.approx(1 / (1 + np.exp(-logits[row["label"]])), abs=1e-6)


async def test_the_root_tells_the_hubs_tasks_apart(client: Client) -> None:
    expected = await ask(client, "/similarity", inputs=SIMILARITY)
    assert await ask(client, "/", inputs=SIMILARITY, parameters={}) == expected
    rows = await ask(client, "/", inputs=TEXTS, parameters=None)
    np.testing.assert_array_equal(rows, await embed(client, TEXTS))


async def test_slashes_too_many(client: Client) -> None:
    rows = (await embed(client, TEXTS)).tolist()
    for path in ("/embed/", "///embed//"):
        assert await ask(client, f"http://heedful{path}", inputs=TEXTS) == rows
    assert (await client.get("/v1//models//tiny-flat")).json()["id"] == "tiny-flat"
    assert 'route="/embed"' in (await client.get("/metrics/")).text


async def test_aliases(serve: Serve, models: Path, tmp_path: Path) -> None:
    """Names of the Hugging Face hub have a slash, which OpenAI's client sends as %2F. A model's own name is none."""
    hub = "BAAI/bge-small-en-v1.5"
    aliases = {"text-embedding-3-small": "tiny-flat", hub: "tiny-flat", "tiny-nli": "tiny-flat"}
    with pytest.raises(StartupError, match="HEEDFUL_ALIASES: tiny-nli=tiny-flat: tiny-nli is the"):
        async with serve(aliases=aliases):
            pass
    folder = tmp_path / "models"
    shutil.copytree(models, folder, ignore=shutil.ignore_patterns("tiny-nli"))
    async with serve(models=folder, api_key=KEY, aliases=aliases) as client:
        client.headers.update(bearer(KEY))

        async def listed() -> list[str]:
            return [model["id"] for model in (await client.get("/v1/models")).json()["data"]]

        rows = (await embed(client, TEXTS, model="tiny-flat")).tolist()
        for name in aliases:
            assert await ask(client, "/embed", inputs=TEXTS, model=name) == rows
            assert (await listed()).count(name) == 1
        for path, name in (
            ("text-embedding-3-small", "text-embedding-3-small"),
            *((path, hub) for path in (hub, f"{hub}/", hub.replace("/", "%2F"))),
            ("tiny-flat/", "tiny-flat"),
        ):
            model = (await client.get(f"/v1/models/{path}")).json()
            assert (model["id"], model["object"]) == (name, "model")
        for path in ("bert", "BAAI/bge-m3"):
            check(await client.get(f"/v1/models/{path}"), 404, "model_not_found", "model")
        page = await metrics(client)
        assert 'route="/v1/models/{model}"' in page
        assert "bert" not in page
        shutil.copytree(models / "tiny-nli", folder / "tiny-nli")
        assert (await client.post("/models/reload")).json()["loaded"] == ["tiny-nli"]
        assert not np.allclose(await embed(client, TEXTS, model="tiny-nli"), rows)
        assert (await listed()).count("tiny-nli") == 1


DOCUMENT = "two kids wash their hands " * 20


async def test_a_long_text_has_the_mean_of_its_windows_or_is_cut(
    serve: Serve, client: Client
) -> None:
    """OpenAI's route takes the mean unless it is told; the operator may have texts cut."""
    flat = {"model": "tiny-flat"}
    answer = await post(client, "/v1/embeddings", input=["kids", DOCUMENT], **flat)
    assert answer.headers["X-Windows"] == "1"
    assert "X-Truncated" not in answer.headers
    assert answer.json()["usage"]["prompt_tokens"] == 101
    same = await post(client, "/embed", inputs=["kids", DOCUMENT], long="mean", **flat)
    assert same.json() == [row["embedding"] for row in answer.json()["data"]]
    assert same.headers["X-Windows"] == "1"
    cut = await post(client, "/v1/embeddings", input=DOCUMENT, truncate=True, **flat)
    assert cut.headers["X-Truncated"] == "1"
    async with serve(truncate=True) as cutting:
        expected = await embed(cutting, " ".join(DOCUMENT.split()[:16]), **flat)
        for more in ({}, {"truncate": None}):
            answer = await post(cutting, "/embed", inputs=DOCUMENT, **flat, **more)
            np.testing.assert_array_equal(answer.json(), expected)
            assert answer.headers["X-Truncated"] == "1"
        row = (await ask(cutting, "/v1/embeddings", input=DOCUMENT, **flat))["data"][0]
        np.testing.assert_array_equal([row["embedding"]], expected)
        refused = await cutting.post("/embed", json={"inputs": DOCUMENT, "truncate": False})
        check(refused, 422, "input_too_long", "inputs")
        mean = await post(cutting, "/embed", inputs=DOCUMENT, long="mean", **flat)
        assert mean.headers["X-Windows"] == "1"


async def test_a_warning_where_the_answer_means_little(client: Client) -> None:
    assert "X-Warning" not in (await post(client, "/embed", inputs=TEXTS)).headers
    warned = await post(client, "/embed", inputs=["Привет мир", "two kids"], model="tiny-flat")
    assert warned.headers["X-Warning"].startswith("1 of 2 inputs ")
    assert "tiny-flat" in warned.headers["X-Warning"]


async def test_the_documentation_is_whole_below_a_proxys_path(client: Client) -> None:
    """The proxy takes its own path away. tests/page/test_why.py draws it there."""
    for path in ("/docs", "/docs/", "//docs"):
        answer = await client.get(f"http://heedful{path}")
        assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'; ")
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        links = re.findall(r"(?:href|src)=\"(?!data:)([^\"]+)|url: '([^']+)'", answer.text)
        addresses = [urljoin(f"https://a.org/nlp{path}", "".join(link)) for link in links]
        assert len(addresses) == 3
        assert all(address.startswith("https://a.org/nlp/") for address in addresses)

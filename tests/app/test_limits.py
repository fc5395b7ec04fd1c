"""Time limit, full queue and disconnecting clients, while the models are held."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import Message

from heedful.app.http.request_record import CLIENT_CLOSED, CLIENT_GONE
from heedful.runtime.inference import Inference
from heedful.runtime.service import Service
from tests.app.conftest import Serve, held
from tests.app.test_errors import check
from tests.app.test_ndjson import NDJSON
from tests.process import PATIENCE

pytestmark = pytest.mark.anyio

BODY = {"inputs": ["a", "b"], "model": "tiny-nli"}  # a model that needs the tree


async def in_flight(service: Service, inputs: int = 2) -> None:
    """Wait until that many inputs are in flight, by default both of BODY."""
    async with asyncio.timeout(PATIENCE):
        while service._engine.in_flight < inputs:
            await asyncio.sleep(0)


@pytest.fixture(scope="module")
async def tight(serve: Serve) -> AsyncIterator[httpx.AsyncClient]:
    """A service with a queue of two inputs and two seconds."""
    # No cache: it would answer while the models are held.
    async with serve(
        cache_items=0,
        threads=1,
        max_queue=2,
        max_batch_inputs=2,
        request_timeout=2,
        cors_origins=("https://a.example",),
    ) as client:
        yield client


async def test_504_at_the_time_limit_and_the_work_is_dropped(tight: httpx.AsyncClient) -> None:
    async with held(tight) as service:
        answer, lines = await asyncio.gather(
            tight.post("/embed", json=BODY), tight.post("/embed", json=BODY, headers=NDJSON)
        )
        error = check(answer, 504, "timeout")
        assert error["type"] == "timeout_error"
        assert "within 2 s" in error["message"]
        assert "within 2 s" in lines.json()["error"]["message"]
        # Its inputs have left the queue: the next one is in flight, and not refused.
        waiting = asyncio.create_task(tight.post("/embed", json=BODY))
        await in_flight(service)
    assert (await waiting).status_code == 200


async def test_429_refuses_the_whole_request_and_says_when_to_return(
    tight: httpx.AsyncClient,
) -> None:
    async with held(tight) as service:
        first = asyncio.create_task(tight.post("/embed", json=BODY))
        await in_flight(service)
        answer = await tight.post("/embed", json={**BODY, "inputs": "c"})
        error = check(answer, 429, "overloaded")
        assert error["type"] == "rate_limit_error"
        assert int(answer.headers["Retry-After"]) >= 1
    assert (await first).status_code == 200


async def test_each_document_of_a_rerank_takes_a_place(tight: httpx.AsyncClient) -> None:
    body = {"query": "a", "documents": ["b", "c"], "model": "tiny-nli"}
    async with held(tight) as service:
        first = asyncio.create_task(tight.post("/embed", json={**BODY, "inputs": "c"}))
        await in_flight(service, 1)
        check(await tight.post("/v1/rerank", json=body), 429, "overloaded")
    assert (await first).status_code == 200
    assert (await tight.post("/v1/rerank", json=body)).status_code == 200


async def post_and_go(
    client: httpx.AsyncClient, body: bytes, *, more_body: bool, gone: asyncio.Event
) -> list[int]:
    """POST /embed from a client that goes away at `gone`; the statuses it would have been sent."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": more_body}]
    statuses: list[int] = []

    async def receive() -> Message:
        if messages:
            return messages.pop()
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/embed",
        "raw_path": b"/embed",
        "query_string": b"",
        "root_path": "",
        "headers": [(b"content-type", b"application/json")],
        "http_version": "1.1",
        "scheme": "http",
        CLIENT_GONE: gone.is_set,
    }
    transport = client._transport
    assert isinstance(transport, httpx.ASGITransport)
    await transport.app(scope, receive, send)
    return statuses


async def test_a_client_that_goes_away_has_its_work_dropped(tight: httpx.AsyncClient) -> None:
    gone = asyncio.Event()
    async with held(tight) as service:
        request = asyncio.create_task(
            post_and_go(tight, json.dumps(BODY).encode(), more_body=False, gone=gone)
        )
        await in_flight(service)
        check(await tight.post("/embed", json=BODY), 429, "overloaded")  # it holds the queue
        gone.set()
        assert await request == [CLIENT_CLOSED]
        # The queue is free again: this one is in flight, and not refused.
        waiting = asyncio.create_task(tight.post("/embed", json=BODY))
        await in_flight(service)
    assert (await waiting).status_code == 200
    page = (await tight.get("/metrics")).text
    assert 'heedful_requests_total{model="tiny-nli",route="/embed",status="499"} 1.0' in page


async def test_a_client_that_goes_away_inside_its_body_is_no_fault(
    tight: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    gone = asyncio.Event()
    gone.set()
    assert await post_and_go(tight, b'{"inputs": ', more_body=True, gone=gone) == [CLIENT_CLOSED]
    assert not [entry for entry in caplog.records if entry.exc_info]


async def test_browsers_may_call_from_the_origins_that_are_set(tight: httpx.AsyncClient) -> None:
    for origin, allowed in (
        ("https://a.example", "https://a.example"),
        ("https://b.example", None),
    ):
        answer = await tight.post("/embed", json={"inputs": ""}, headers={"Origin": origin})
        assert answer.headers.get("Access-Control-Allow-Origin") == allowed
        assert answer.status_code == 422
        if allowed:
            exposed = answer.headers["Access-Control-Expose-Headers"]
            for name in (
                "X-Dtype",
                "X-Ignored-Fields",
                "X-Shape",
                "X-Truncated",
                "X-Warning",
                "X-Windows",
            ):
                assert name in exposed


async def test_a_preflight_that_is_refused_gets_the_envelope(tight: httpx.AsyncClient) -> None:
    for origin, status in (("https://a.example", 200), ("https://b.example", 400)):
        headers = {"Origin": origin, "Access-Control-Request-Method": "POST"}
        answer = await tight.options("/embed", headers=headers)
        assert answer.status_code == status
        assert "Origin" in answer.headers["Vary"]
        if status == 400:
            message = check(answer, 400, "cors_refused")["message"]
            assert "origin" in message
            assert "HEEDFUL_CORS_ORIGINS" in message
            assert "Access-Control-Allow-Origin" not in answer.headers


KEYS = """
[page]
key = "page"

[import]
key = "import"
class = "bulk"
"""


async def test_bulk_requests_are_told_from_interactive_ones(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the header and by the key's class, as NDJSON too."""
    found: list[bool] = []
    bind = Service.bind

    def noting(*args: Any, bulk: bool, **options: Any) -> Inference:
        found.append(bulk)
        return bind(*args, bulk=bulk, **options)

    monkeypatch.setattr(Service, "bind", noting)
    (tmp_path / "keys.toml").write_text(KEYS)
    page, importing = ({"Authorization": f"Bearer {key}"} for key in ("page", "import"))
    bulk = {"X-Priority": "bulk"}
    async with serve(api_keys=tmp_path / "keys.toml") as client:
        for headers in (page, page | bulk, importing):
            for media in ({}, NDJSON):
                answer = await client.post("/embed", json=BODY, headers=headers | media)
                assert answer.status_code == 200
    assert found == [False, False, True, True, True, True]

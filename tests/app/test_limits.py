"""Time limit, full queue and disconnecting clients, while the models are held; and other origins' pages."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Message

from heedful.app.http.request_record import CLIENT_CLOSED, CLIENT_GONE
from heedful.runtime.inference import Inference
from heedful.runtime.service import Service
from tests.app.conftest import Serve, held
from tests.app.posting import NDJSON, Client, app_of, bearer, check, metrics, post
from tests.process import PATIENCE

pytestmark = pytest.mark.anyio
BODY = {"inputs": ["a", "b"], "model": "tiny-nli"}  # a model that needs the tree
ORIGIN, OTHER = "https://a.example", "https://b.example"
SHOWN = {"X-Dtype", "X-Ignored-Fields", "X-Shape", "X-Truncated", "X-Warning", "X-Windows"}


async def in_flight(service: Service, inputs: int = 2) -> None:
    """Wait until that many inputs are in flight, by default both of BODY."""
    async with asyncio.timeout(PATIENCE):
        while service._engine.in_flight < inputs:
            await asyncio.sleep(0)


@pytest.fixture(scope="module")
async def tight(serve: Serve) -> AsyncIterator[Client]:
    """A service with a queue of two inputs and two seconds."""
    limits = {"threads": 1, "max_queue": 2, "max_batch_inputs": 2, "request_timeout": 2}
    # No cache: it would answer while the models are held.
    async with serve(cache_items=0, cors_origins=(ORIGIN,), **limits) as client:
        yield client


async def test_504_at_the_time_limit_and_the_work_is_dropped(tight: Client) -> None:
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


async def test_429_refuses_the_whole_request_and_says_when_to_return(tight: Client) -> None:
    """Each document of a rerank takes a place."""
    documents = {"query": "a", "documents": ["b", "c"], "model": "tiny-nli"}
    single = {**BODY, "inputs": "c"}
    for first, inputs, path, body in (
        (BODY, 2, "/embed", single),
        (single, 1, "/v1/rerank", documents),
    ):
        async with held(tight) as service:
            waiting = asyncio.create_task(tight.post("/embed", json=first))
            await in_flight(service, inputs)
            answer = await tight.post(path, json=body)
            assert check(answer, 429, "overloaded")["type"] == "rate_limit_error"
            assert int(answer.headers["Retry-After"]) >= 1
        assert (await waiting).status_code == 200
        await post(tight, path, **body)


async def post_and_go(
    client: Client, body: bytes, *, more_body: bool, gone: asyncio.Event
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
        **{"type": "http", "method": "POST", "path": "/embed", "raw_path": b"/embed"},
        **{"query_string": b"", "root_path": "", "http_version": "1.1", "scheme": "http"},
        "headers": [(b"content-type", b"application/json")],
        CLIENT_GONE: gone.is_set,
    }
    await app_of(client)(scope, receive, send)
    return statuses


async def test_a_client_that_goes_away_has_its_work_dropped(
    tight: Client, caplog: pytest.LogCaptureFixture
) -> None:
    gone, body = asyncio.Event(), json.dumps(BODY).encode()
    async with held(tight) as service:
        request = asyncio.create_task(post_and_go(tight, body, more_body=False, gone=gone))
        await in_flight(service)
        check(await tight.post("/embed", json=BODY), 429, "overloaded")  # it holds the queue
        gone.set()
        assert await request == [CLIENT_CLOSED]
        # The queue is free again: this one is in flight, and not refused.
        waiting = asyncio.create_task(tight.post("/embed", json=BODY))
        await in_flight(service)
    assert (await waiting).status_code == 200
    counted = 'heedful_requests_total{model="tiny-nli",route="/embed",status="499"} 1.0'
    assert counted in await metrics(tight)
    assert await post_and_go(tight, body[:9], more_body=True, gone=gone) == [CLIENT_CLOSED]
    assert not [entry for entry in caplog.records if entry.exc_info]  # inside its body neither


async def test_browsers_may_call_from_the_origins_that_are_set(tight: Client) -> None:
    """A preflight that is refused gets the envelope."""
    for origin, allowed in ((ORIGIN, True), (OTHER, False)):
        answer = await tight.post("/embed", json={"inputs": ""}, headers={"Origin": origin})
        assert answer.status_code == 422
        assert answer.headers.get("Access-Control-Allow-Origin") == (origin if allowed else None)
        if allowed:
            assert set(answer.headers["Access-Control-Expose-Headers"].split(", ")) >= SHOWN
        headers = {"Origin": origin, "Access-Control-Request-Method": "POST"}
        answer = await tight.options("/embed", headers=headers)
        assert "Origin" in answer.headers["Vary"]
        if allowed:
            assert answer.status_code == 200
        else:
            message = check(answer, 400, "cors_refused")["message"]
            assert "origin" in message
            assert "HEEDFUL_CORS_ORIGINS" in message
            assert "Access-Control-Allow-Origin" not in answer.headers


KEYS = '[page]\nkey = "page"\n\n[import]\nkey = "import"\nclass = "bulk"\n'


async def test_bulk_requests_are_told_from_interactive_ones(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request is bulk by its header or its key's class, also as NDJSON."""
    noted: list[bool] = []
    bind = Service.bind

    def noting(*args: Any, bulk: bool, **options: Any) -> Inference:
        noted.append(bulk)
        return bind(*args, bulk=bulk, **options)

    monkeypatch.setattr(Service, "bind", noting)
    (tmp_path / "keys.toml").write_text(KEYS)
    page, importing, bulk = bearer("page"), bearer("import"), {"X-Priority": "bulk"}
    async with serve(api_keys=tmp_path / "keys.toml") as client:
        for headers in (page, page | bulk, importing):
            for media in ({}, NDJSON):
                answer = await client.post("/embed", json=BODY, headers=headers | media)
                assert answer.status_code == 200
    assert noted == [False, False, True, True, True, True]

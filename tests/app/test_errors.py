"""Errors that no single route has, each in the one envelope: unknown routes, faults, time, a full queue, browsers."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from heedful.runtime.service import Service
from tests.app.conftest import KEY, Serve, held, in_flight
from tests.app.posting import NDJSON, Client, app_of, bearer, check, metrics, post

pytestmark = pytest.mark.anyio
BODY = {"inputs": ["a", "b"], "model": "tiny-nli"}  # a model that needs the tree
ORIGIN, OTHER = "https://a.example", "https://b.example"
SHOWN = {"X-Dtype", "X-Ignored-Fields", "X-Shape", "X-Truncated", "X-Warning", "X-Windows"}


@pytest.mark.parametrize(
    ("method", "path", "status", "code", "parts"),
    [
        ("POST", "/models/reload", 403, "api_key_not_set", ["HEEDFUL_API_KEY", "SIGHUP"]),
        ("GET", "/nowhere/", 404, "route_not_found", []),
        ("GET", "/embed/x", 404, "route_not_found", []),
        ("GET", "/%00", 404, "route_not_found", []),
        ("GET", "/embed", 405, "method_not_allowed", ["POST"]),
        ("DELETE", "/health", 405, "method_not_allowed", ["GET, HEAD"]),
        ("PUT", "/", 405, "method_not_allowed", ["GET, HEAD, POST"]),
    ],
)
async def test_a_refusal_names_the_remedy(
    client: Client, method: str, path: str, status: int, code: str, parts: list[str]
) -> None:
    answer = await client.request(method, path)
    message = check(answer, status, code)["message"]
    assert [part for part in parts if part not in message] == []
    assert answer.headers.get("Allow") == (parts[0] if status == 405 else None)


async def fault() -> None:
    raise LookupError("/a/secret/path")


async def test_an_uncaught_exception_is_logged_once_and_its_cause_is_not_sent(
    serve: Serve, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A route that a deployment adds may fail like ours."""
    async with serve(api_key=KEY, cors_origins=(ORIGIN,)) as client:
        client.headers.update(bearer(KEY))
        app_of(client).add_api_route("/fault", fault)
        answer = await client.get("/fault", headers={"X-Request-Id": "this", "Origin": ORIGIN})
        assert check(answer, 500, "internal_error")["type"] == "server_error"
        assert answer.headers["Access-Control-Allow-Origin"] == ORIGIN
        assert "secret" not in answer.text
        [logged] = [entry for entry in caplog.records if entry.exc_info]
        assert vars(logged)["request_id"] == "this"
        assert "/a/secret/path" in str(logged.exc_info)
        counted = 'heedful_requests_total{model="none",route="other",status="500"} 1.0'
        assert counted in await metrics(client)
        monkeypatch.setattr(Service, "reload", lambda _: 1 / 0)
        answer = await client.post("/models/reload")
        assert "the log says why" in check(answer, 503, "unavailable")["message"]
        assert "ZeroDivisionError" in caplog.text


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
        await in_flight(service, 2)
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


async def test_browsers_may_call_from_the_origins_that_are_set(tight: Client) -> None:
    """A preflight that is refused gets the envelope."""
    for origin, allowed in ((ORIGIN, True), (OTHER, False)):
        answer = await tight.post("/embed", json={"inputs": ""}, headers={"Origin": origin})
        assert answer.status_code == 422
        assert answer.headers.get("Access-Control-Allow-Origin") == (origin if allowed else None)
        shown = answer.headers.get("Access-Control-Expose-Headers", "").split(", ")
        assert set(shown) >= SHOWN or not allowed
        headers = {"Origin": origin, "Access-Control-Request-Method": "POST"}
        answer = await tight.options("/embed", headers=headers)
        assert "Origin" in answer.headers["Vary"]
        if allowed:
            assert answer.status_code == 200
        else:
            message = check(answer, 400, "cors_refused")["message"]
            assert "HEEDFUL_CORS_ORIGINS" in message
            assert "Access-Control-Allow-Origin" not in answer.headers

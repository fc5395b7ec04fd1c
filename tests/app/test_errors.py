"""Errors that no single route has, each in the one envelope, and what the log says of them."""

from collections.abc import AsyncIterator

import pytest
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from heedful.app import errors
from heedful.runtime import errors as runtime_errors
from heedful.runtime.service import Service
from tests.app.conftest import KEY, Serve
from tests.app.posting import JSON, Client, app_of, bearer, check, embed, metrics

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def idle(serve: Serve) -> AsyncIterator[Client]:
    """A service whose models were never loaded."""
    async with serve(start=False, max_body_bytes=1000) as client:
        yield client


@pytest.mark.parametrize("media", [None, "", "text/plain"])
async def test_a_body_without_a_type_is_refused(idle: Client, media: str | None) -> None:
    headers = {} if media is None else {"Content-Type": media}
    answer = await idle.post("/embed", content=b'{"inputs": "a"}', headers=headers)
    assert "Content-Type" in check(answer, 400, "wrong_content_type")["message"]


@pytest.mark.parametrize("media", ["application/json; charset=utf-8", "application/problem+json"])
async def test_json_by_another_name_is_read(idle: Client, media: str) -> None:
    answer = await idle.post("/embed", content=b'{"inputs": "a"}', headers={"Content-Type": media})
    check(answer, 503, "not_ready")


@pytest.mark.parametrize(
    ("method", "path", "status", "code", "parts"),
    [
        ("POST", "/models/reload", 403, "api_key_not_set", ["HEEDFUL_API_KEY", "SIGHUP"]),
        ("GET", "/nowhere", 404, "route_not_found", []),
        ("GET", "/nowhere/", 404, "route_not_found", []),
        ("GET", "/embed/x", 404, "route_not_found", []),
        ("GET", "/models/tiny-nli", 404, "route_not_found", []),
        ("GET", "/%00", 404, "route_not_found", []),
        ("GET", "/v1/files", 404, "route_not_found", []),
        ("GET", "/embed", 405, "method_not_allowed", ["POST"]),
        ("DELETE", "/health", 405, "method_not_allowed", ["GET, HEAD"]),
        ("PUT", "/", 405, "method_not_allowed", ["GET, HEAD, POST"]),
    ],
)
async def test_a_refusal_names_the_remedy(
    idle: Client, method: str, path: str, status: int, code: str, parts: list[str]
) -> None:
    answer = await idle.request(method, path)
    message = check(answer, status, code)["message"]
    assert [part for part in parts if part not in message] == []
    assert answer.headers.get("Allow") == (parts[0] if status == 405 else None)


async def test_no_more_of_a_body_is_read_than_the_limit(idle: Client) -> None:
    async def never() -> AsyncIterator[bytes]:
        raise AssertionError("the body was read")
        yield b""

    answer = await idle.post("/embed", content=never(), headers={**JSON, "Content-Length": "1001"})
    assert "1000" in check(answer, 413, "body_too_large")["message"]
    assert answer.headers["Connection"] == "close"
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 100
            yield b" " * 100

    check(await idle.post("/embed", content=endless(), headers=JSON), 413, "body_too_large")
    assert sent <= 1200  # the chunk that broke the limit, and one that httpx holds ready
    body = b'{"inputs": 1}'.ljust(1000)
    check(await idle.post("/embed", content=body, headers=JSON), 422, "invalid_type", "inputs")
    check(await idle.post("/embed", content=body + b" ", headers=JSON), 413, "body_too_large")


async def fault() -> None:
    raise LookupError("/a/secret/path")


async def broken() -> StreamingResponse:
    async def parts() -> AsyncIterator[bytes]:
        yield b"begun"
        raise LookupError("a cause")

    return StreamingResponse(parts())


async def test_an_uncaught_exception_is_logged_once_and_its_cause_is_not_sent(
    serve: Serve, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A route that a deployment adds may fail like ours; the middleware that it adds sees all requests."""
    origin, paths = "https://a.example", list[str]()

    async def seen(request: Request, call_next: RequestResponseEndpoint) -> Response:
        paths.append(request.url.path)
        return await call_next(request)

    async with serve(cors_origins=(origin,)) as client:
        app = app_of(client)
        app.add_middleware(BaseHTTPMiddleware, dispatch=seen)
        app.add_api_route("/fault", fault)
        app.add_api_route("/broken", broken)
        answer = await client.get("/fault", headers={"X-Request-Id": "this", "Origin": origin})
        assert check(answer, 500, "internal_error")["type"] == "server_error"
        assert answer.headers["Access-Control-Allow-Origin"] == origin
        assert "secret" not in answer.text
        with pytest.raises(LookupError):
            await client.get("/broken")
        first, second = [entry for entry in caplog.records if entry.exc_info]
        assert (vars(first)["request_id"], second.getMessage()) == ("this", "request failed")
        assert "/a/secret/path" in str(first.exc_info)
        counted = 'heedful_requests_total{model="none",route="other",status="500"} 1.0'
        assert counted in await metrics(client)
        await embed(client, "a dog")
        check(await client.get("/embed"), 405, "method_not_allowed")
        assert paths == ["/fault", "/broken", "/metrics", "/embed", "/embed"]
        monkeypatch.setattr(Service, "bind", lambda *_, **__: [].pop())
        check(await client.post("/embed", json={"inputs": "a dog"}), 500, "internal_error")
    async with serve(api_key=KEY) as client:
        monkeypatch.setattr(Service, "reload", lambda _: 1 / 0)
        answer = await client.post("/models/reload", headers=bearer(KEY))
        assert "the log says why" in check(answer, 503, "unavailable")["message"]
        assert "the reload failed, the models served before stay" in caplog.text


def test_every_error_of_the_runtime_has_a_status() -> None:
    pending = [runtime_errors.RequestError]
    while pending:
        kind = pending.pop()
        pending += kind.__subclasses__()
        if kind not in (runtime_errors.RequestError, errors.Refused):
            assert any(base in errors.STATUS for base in kind.__mro__), kind

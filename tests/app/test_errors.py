"""Every status, each in the one envelope."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from heedful.app import errors
from heedful.app.application import create_app
from heedful.app.settings import Settings
from heedful.runtime import errors as runtime_errors
from tests.app.conftest import Serve

pytestmark = pytest.mark.anyio

JSON = {"Content-Type": "application/json"}


def check(
    answer: httpx.Response, status: int, code: str, param: str | None = None
) -> dict[str, Any]:
    """The answer is the envelope and nothing else; returns what is in it."""
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["X-Request-Id"]
    assert "total;dur=" in answer.headers["Server-Timing"]
    fields = error_of(answer)
    assert fields["message"]
    assert "Traceback" not in answer.text
    assert (fields["code"], fields["param"]) == (code, param)
    return fields


def error_of(answer: httpx.Response) -> dict[str, Any]:
    """What is in the envelope; on the Open Inference Protocol's routes `error` is the message."""
    body: dict[str, Any] = answer.json()
    path = answer.request.url.path
    if path == "/v2" or (path.startswith("/v2/") and path not in ("/v2/embed", "/v2/rerank")):
        assert isinstance(body["error"], str)
        fields = {"message": body.pop("error"), **body}
    else:
        assert list(body) == ["error"]
        fields = body["error"]
    assert list(fields) == ["message", "type", "param", "code"]
    return fields


@pytest.fixture(scope="module")
async def idle(serve: Serve) -> AsyncIterator[httpx.AsyncClient]:
    """A service whose models were never loaded."""
    async with serve(start=False, max_body_bytes=1000) as client:
        yield client


@pytest.mark.parametrize("headers", [{}, {"Content-Type": "text/plain"}, {"Content-Type": ""}])
async def test_400_names_the_header_that_is_missing(
    idle: httpx.AsyncClient, headers: dict[str, str]
) -> None:
    answer = await idle.post("/embed", content=b'{"inputs": "a"}', headers=headers)
    assert "Content-Type" in check(answer, 400, "wrong_content_type")["message"]


@pytest.mark.parametrize("media", ["application/json; charset=utf-8", "application/problem+json"])
async def test_json_by_another_name_is_read(client: httpx.AsyncClient, media: str) -> None:
    answer = await client.post(
        "/embed", content=b'{"inputs": "a"}', headers={"Content-Type": media}
    )
    assert answer.status_code == 200


@pytest.mark.parametrize(
    "header",
    [
        *(None, "", "Bearer", "Bearer wrong", "Basic sesame", "sesame"),
        *("Bearer s", "Bearer sesam", "Bearer sesame2", "Bearer sesame and more", "Bearer ключ"),
    ],
)
async def test_401_without_the_key(serve: Serve, header: str | None) -> None:
    async with serve(start=False, api_key="sesame") as client:
        headers = {} if header is None else {"Authorization": header.encode()}
        for method, path in (("POST", "/embed"), ("GET", "/models"), ("GET", "/nowhere")):
            answer = await client.request(method, path, headers=headers)  # type: ignore[arg-type]  # bytes are fine
            check(answer, 401, "unauthorized")
            assert answer.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("header", ["Bearer sesame", "bearer sesame"])
async def test_the_key_opens_and_probes_need_none(serve: Serve, header: str) -> None:
    async with serve(start=False, api_key="sesame") as client:
        for path in ("/health", "/metrics"):
            assert (await client.get(path)).status_code == 200
        check(await client.get("/ready"), 503, "not_ready")
        answer = await client.get("/openapi.json", headers={"Authorization": header})
        assert answer.status_code == 200


@pytest.mark.parametrize(
    "path", ["/nowhere", "/nowhere/", "/embed/x", "/models/tiny-nli", "/%00", "/v1/files"]
)
async def test_404_an_unknown_route(idle: httpx.AsyncClient, path: str) -> None:
    check(await idle.get(path), 404, "route_not_found")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/embed", "POST"),
        ("DELETE", "/health", "GET, HEAD"),
        ("PUT", "/", "GET, HEAD, POST"),
    ],
)
async def test_405_names_what_is_allowed(
    idle: httpx.AsyncClient, method: str, path: str, allowed: str
) -> None:
    answer = await idle.request(method, path)
    assert allowed in check(answer, 405, "method_not_allowed")["message"]
    assert answer.headers["Allow"] == allowed


async def test_403_a_reload_without_a_key_names_both_remedies(idle: httpx.AsyncClient) -> None:
    message = check(await idle.post("/models/reload"), 403, "api_key_not_set")["message"]
    assert "HEEDFUL_API_KEY" in message
    assert "SIGHUP" in message


async def test_413_a_body_said_to_be_too_long_is_not_read(idle: httpx.AsyncClient) -> None:
    async def never() -> AsyncIterator[bytes]:
        raise AssertionError("the body was read")
        yield b""

    answer = await idle.post("/embed", content=never(), headers={**JSON, "Content-Length": "1001"})
    assert "1000" in check(answer, 413, "body_too_large")["message"]
    assert answer.headers["Connection"] == "close"


async def test_413_a_streamed_body_is_not_read_past_the_limit(idle: httpx.AsyncClient) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 100
            yield b" " * 100

    answer = await idle.post("/embed", content=endless(), headers=JSON)
    check(answer, 413, "body_too_large")
    assert sent <= 1200  # the chunk that broke the limit, and one that httpx holds ready


async def test_a_body_of_just_the_limit_is_read(idle: httpx.AsyncClient) -> None:
    body = b'{"inputs": 1}'.ljust(1000)
    check(await idle.post("/embed", content=body, headers=JSON), 422, "invalid_type", "inputs")
    check(await idle.post("/embed", content=body + b" ", headers=JSON), 413, "body_too_large")


async def test_500_says_nothing_of_the_cause_but_the_log_does(
    models: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def fault() -> None:
        raise LookupError("/a/secret/path")

    origin = "https://a.example"
    app = create_app(Settings(models=models, cors_origins=(origin,)))
    app.add_api_route("/fault", fault)
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://heedful") as client:
        headers = {"X-Request-Id": "this-one", "Origin": origin}
        answer = await client.get("/fault", headers=headers)
        assert check(answer, 500, "internal_error")["type"] == "server_error"
        assert answer.headers["Access-Control-Allow-Origin"] == origin
        assert "secret" not in answer.text
        page = (await client.get("/metrics")).text
    assert 'heedful_requests_total{model="none",route="other",status="500"} 1.0' in page
    [logged] = [entry for entry in caplog.records if entry.exc_info]
    assert "/a/secret/path" in str(logged.exc_info)
    assert vars(logged)["request_id"] == "this-one"


def test_every_error_of_the_runtime_has_a_status() -> None:
    pending = [runtime_errors.RequestError]
    while pending:
        kind = pending.pop()
        pending += kind.__subclasses__()
        if kind not in (runtime_errors.RequestError, errors.Refused):
            assert any(base in errors.STATUS for base in kind.__mro__), kind

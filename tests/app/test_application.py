"""The middleware that a deployment adds sees every request; an uncaught exception is answered and logged once."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import NoReturn

import httpx
import pytest
from starlette.responses import StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from heedful.app.application import create_app
from heedful.app.settings import Settings
from heedful.app.state import state_of
from heedful.runtime.service import Service

pytestmark = pytest.mark.anyio


class Seen:
    """Notes the path of each request."""

    def __init__(self, app: ASGIApp, paths: list[str]) -> None:
        self._app, self._paths = app, paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            self._paths.append(scope["path"])
        await self._app(scope, receive, send)


async def test_added_middleware_sees_every_request(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault(*_: object, **__: object) -> NoReturn:
        raise LookupError("a cause")

    paths: list[str] = []
    app = create_app(Settings(models=models))
    app.add_middleware(Seen, paths=paths)
    transport = httpx.ASGITransport(app=app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://heedful") as client,
    ):
        await state_of(app).starting
        answer = await client.post("/embed", json={"inputs": "a dog"})
        assert (answer.status_code, paths) == (200, ["/embed"])
        assert (await client.get("/health")).status_code == 200
        assert (await client.get("/embed")).status_code == 405
        assert paths == ["/embed", "/health", "/embed"]
        monkeypatch.setattr(Service, "bind", fault)
        answer = await client.post("/embed", json={"inputs": "a dog"})
        assert answer.json()["error"]["code"] == "internal_error"


async def test_an_answer_that_breaks_off_is_logged_once(
    models: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken() -> StreamingResponse:
        async def parts() -> AsyncIterator[bytes]:
            yield b"begun"
            raise LookupError("a cause")

        return StreamingResponse(parts())

    app = create_app(Settings(models=models))
    app.add_api_route("/broken", broken)
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://heedful") as client:
        with pytest.raises(LookupError):
            await client.get("/broken")
    [logged] = [line for line in caplog.records if line.exc_info]
    assert logged.getMessage() == "request failed"

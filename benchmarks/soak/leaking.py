"""`heedful`, but each request leaks LEAK bytes, which the memory test must catch."""

from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from heedful.app.application import create_app
from heedful.app.process import serve
from heedful.app.process.table import Slot
from heedful.app.settings import Settings
from heedful.cli.main import main
from heedful.runtime.bundles.loader import Loaded

LEAK = 256 * 1024


class Leak:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._leaked: list[bytes] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._leaked.append(b"x" * LEAK)
        await self._app(scope, receive, send)


def leaking(settings: Settings, slot: Slot | None = None, loaded: Loaded | None = None) -> FastAPI:
    app = create_app(settings, slot, loaded)
    app.add_middleware(Leak)
    return app


if __name__ == "__main__":
    vars(serve)["create_app"] = leaking
    main()

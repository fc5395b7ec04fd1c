"""Application: FastAPI inside our middleware."""

from collections.abc import Sequence

from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Receive, Scope, Send


class Application(FastAPI):
    """FastAPI whose own middleware is inside ours, so that only the requests pass it that FastAPI answers.

    What `add_middleware` adds is inside FastAPI's own.
    """

    outside: Sequence[Middleware] = ()
    """Ours, the outermost first."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Of a request FastAPI would ask for telemetry, which are in `app.observability`."""
        if scope["type"] != "http" or self.middleware_stack is None:
            await super().__call__(scope, receive, send)
            return
        scope["app"] = self
        await self.middleware_stack(scope, receive, send)

    def build_middleware_stack(self) -> ASGIApp:
        app = super().build_middleware_stack()
        for layer in reversed(self.outside):
            app = layer.cls(app, *layer.args, **layer.kwargs)
        return app

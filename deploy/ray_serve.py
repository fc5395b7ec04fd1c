"""Heedful on Ray Serve, for those who run Ray: from the repository, `serve run deploy.ray_serve:app`.

A replica is one whole serving process and the ingress: every route of docs/api.md, with no hop between them. The
settings are the service's environment variables. docs/operations.md says which do not apply, and what it costs.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from ray import serve
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from heedful.app import settings
from heedful.app.application import create_app
from heedful.app.observability import logs


def load_settings() -> settings.Settings:
    """The environment's, for a replica of one core: one thread, unless HEEDFUL_THREADS is set. Raises StartupError."""
    chosen = settings.load()
    return chosen if chosen.threads else chosen.model_copy(update={"threads": 1})


def build() -> FastAPI:
    """The service, made in its replica. It takes requests when its models answer."""
    chosen = load_settings()
    logs.configure(chosen.log_format, chosen.log_level)
    app = create_app(chosen)
    begin = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[Any]:
        async with begin(app) as state:
            await app.state.heedful.starting
            yield state

    app.router.lifespan_context = lifespan
    return app


app = serve.deployment(
    name="heedful",
    # Batches form among the requests in flight: Ray's default, 5, starves them.
    max_ongoing_requests=128,
    autoscaling_config={"min_replicas": 2, "max_replicas": 16, "target_ongoing_requests": 64},
    ray_actor_options={"num_cpus": 1},
    health_check_period_s=2,
)(serve.ingress(build)()).bind()


class Unavailable:
    """503 where Ray's proxy would say 500 in text because a replica died under the request: it may be sent again."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = scope["type"] != "http"

        async def sent(message: Message) -> None:
            nonlocal started
            started = True
            if message["type"] == "http.response.start" and message["status"] == 500:
                kinds = [value for name, value in message["headers"] if name == b"content-type"]
                if b"application/json" not in kinds:  # the service's own errors are JSON
                    message = {**message, "status": 503}
            await send(message)

        try:
            await self.app(scope, receive, sent)
        finally:
            if not started:
                await send({"type": "http.response.start", "status": 503, "headers": []})
                await send({"type": "http.response.body"})


def middlewares() -> list[Middleware]:
    """For Ray's proxies: RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH=deploy.ray_serve:middlewares."""
    return [Middleware(Unavailable)]

"""create_app: settings -> the ASGI application, which starts and stops the service in its lifespan."""

import asyncio
import contextlib
import importlib.metadata
import resource
from collections.abc import AsyncIterator
from dataclasses import fields
from functools import partial
from typing import Any

from fastapi import FastAPI
from fastapi.middleware.asyncexitstack import AsyncExitStackMiddleware
from fastapi.routing import APIRoute
from starlette.middleware import Middleware
from starlette.types import ASGIApp

from heedful.app.http.auth import ApiKey, Keys
from heedful.app.http.body import BodyLimit
from heedful.app.http.framework_errors import CrossOrigin
from heedful.app.http.inference_route import InferenceRoute
from heedful.app.http.request_record import Recorder
from heedful.app.observability.metrics import Metrics
from heedful.app.observability.tracing import Tracing
from heedful.app.process.table import ProcessTable, Slot
from heedful.app.routes import core, openapi_document, pages, status
from heedful.app.routes.compat import cohere, huggingface, kserve, openai, predict, similarity
from heedful.app.schemas.openapi_responses import ARRAY_HEADERS
from heedful.app.settings import Settings
from heedful.app.state import AppState
from heedful.runtime.bundles.loader import Loaded
from heedful.runtime.service import Options, Service

OTHER_FILES = 64
"""Files that a process may have open for other things than connections."""
ROUTERS = (
    core.router,
    huggingface.router,
    predict.router,
    similarity.router,
    openai.router,
    openai.models_router,
    status.router,
    status.control_router,
    pages.router,
    similarity.rerank_router,
    cohere.router,
    kserve.router,
    kserve.infer_router,
)
ROUTES = [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]
INFERENCE_ROUTES = [route for route in ROUTES if isinstance(route, InferenceRoute)]
POSTED: dict[str, ASGIApp] = {  # FastAPI's search takes 20 µs
    route.path: route.app for route in INFERENCE_ROUTES if not route.param_convertors
}


class Application(FastAPI):
    """FastAPI without its default middleware, which answers errors in other words and takes 40 µs of a request."""

    def build_middleware_stack(self) -> ASGIApp:
        app: ASGIApp = AsyncExitStackMiddleware(self.router)  # FastAPI's endpoints need it
        for layer, args, options in reversed(self.user_middleware):
            app = layer(app, *args, **options)
        return app

    def openapi(self) -> dict[str, Any]:
        return openapi_document.with_details(super().openapi(), INFERENCE_ROUTES)


def create_app(
    settings: Settings, slot: Slot | None = None, loaded: Loaded | None = None
) -> FastAPI:
    """The application of a serving process. Unless `loaded`, it answers 503 while the models load.

    `slot` is the process's in the table of those behind the port; None where it is the only process.
    """
    slot = slot or ProcessTable(1, settings.hang_timeout).slots[0]
    size = len(slot.table.slots)
    metrics = Metrics(slot)
    tracing = Tracing.from_environment()
    options = Options(**{field.name: getattr(settings, field.name) for field in fields(Options)})
    service = Service(options, metrics, loaded)
    open_files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    connections = (
        settings.max_connections // size if settings.max_connections else open_files - OTHER_FILES
    )
    keys = Keys(settings)
    state = AppState(
        settings, service, metrics, slot, max(1, connections), keys, loaded is not None
    )

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        state.start()
        key_refresh = asyncio.create_task(keys.keep_fresh())
        try:
            yield
        finally:
            await state.stop()
            key_refresh.cancel()
            await asyncio.wait({key_refresh})
            if tracing:
                await asyncio.to_thread(tracing.close)

    app = Application(
        title="Heedful",
        summary="Small self-attentive sentence encoders",
        version=importlib.metadata.version("heedful"),
        lifespan=lifespan,
        redoc_url=None,
        docs_url=None,  # app.routes.pages serves /docs
        redirect_slashes=False,
        # app.observability traces and counts: FastAPI would do it a second time.
        telemetry={"tracing": False, "metrics": False, "logs": False},
        middleware=_middleware(settings, keys, metrics, tracing),
    )
    app.state.heedful = state
    # In place of include_router, whose matching and contexts take 10 µs of each request.
    app.router.routes.extend([*ROUTES, *pages.FILES])
    return app


def _middleware(
    settings: Settings, keys: Keys, metrics: Metrics, tracing: Tracing | None
) -> list[Middleware]:
    """Outermost first: the record, with headers for other origins; the API key; the limit of Content-Length."""
    paths = {route.path for route in ROUTES} | pages.PATHS
    recorder = Middleware(Recorder, metrics=metrics, paths=paths, tracing=tracing)
    if settings.cors_origins:
        recorder.kwargs["cors"] = partial(
            CrossOrigin,
            allow_origins=settings.cors_origins,
            allow_methods=["*"],
            allow_headers=["*"],
            expose_headers=[*openapi_document.HEADERS, *ARRAY_HEADERS],
        )
    layers = [recorder]
    if keys.needed:
        layers.append(Middleware(ApiKey, keys=keys, pages=pages.PATHS, names=settings.metrics_keys))
    return [*layers, Middleware(BodyLimit, limit=settings.max_body_bytes, posted=POSTED)]

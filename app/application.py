"""create_app: settings -> the ASGI application, which starts and stops the service in its lifespan."""

import asyncio
import contextlib
import importlib.metadata
from collections.abc import AsyncIterator
from functools import partial

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.middleware import Middleware

from heedful.app import errors
from heedful.app.http import array_responses
from heedful.app.http.auth import Keys
from heedful.app.http.cors import CrossOrigin
from heedful.app.http.fast_path import FastPath, inference_routes
from heedful.app.http.fastapi_application import Application
from heedful.app.http.middleware import ApiKey, BodyLimit, Failures, HeadAsGet, Recorded
from heedful.app.http.paths import Paths
from heedful.app.observability.metrics import Metrics
from heedful.app.observability.tracing import Tracing
from heedful.app.process.descriptors import max_connections
from heedful.app.process.table import ProcessTable, Slot
from heedful.app.routes import (
    core,
    demo_page,
    explanations,
    openapi_document,
    reload,
    status,
    swagger_page,
)
from heedful.app.routes.compat import (
    huggingface,
    kserve,
    kserve_binary,
    openai,
    openai_models,
    predict,
    rerank,
    similarity,
)
from heedful.app.settings import Settings
from heedful.app.state import AppState
from heedful.runtime.bundles.loader import Loaded
from heedful.runtime.service import Options, Service

ROUTERS = (
    core.router,
    huggingface.router,
    predict.router,
    similarity.router,
    explanations.router,
    openai.router,
    openai_models.router,
    status.router,
    reload.router,
    demo_page.router,
    swagger_page.router,
    rerank.router,
    kserve.router,
    kserve.infer_router,
)


def create_app(
    settings: Settings,
    slot: Slot | None = None,
    loaded: Loaded | None = None,
) -> Application:
    """The application of one serving process. Unless `loaded`, it answers 503 while the models load.

    `slot` is the process's among those behind the port; None where it is the only one.
    """
    slot = slot or ProcessTable(1, settings.hang_timeout).slots[0]
    size = len(slot.table.slots)
    metrics = Metrics(slot)
    tracing = Tracing.from_environment()
    service = Service(_options(settings), metrics, loaded)
    endpoints = inference_routes(ROUTERS)
    streams = {path for path in endpoints if "{" not in path}
    share = (
        max(1, settings.max_connections // size) if settings.max_connections else max_connections()
    )
    keys = Keys(settings)
    state = AppState(settings, service, metrics, slot, share, keys, loaded is not None)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        state.start()
        refreshing = asyncio.create_task(keys.keep_fresh())
        try:
            yield
        finally:
            await state.stop()
            refreshing.cancel()
            await asyncio.wait({refreshing})
            if tracing:
                await asyncio.to_thread(tracing.close)

    app = Application(
        title="Heedful",
        summary="Small self-attentive sentence encoders",
        version=importlib.metadata.version("heedful"),
        lifespan=lifespan,
        redoc_url=None,
        docs_url=None,  # app.routes.swagger_page has it
        redirect_slashes=False,
        # app.observability.tracing and app.observability.metrics do this; FastAPI would count everything twice.
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.state.heedful = state
    for router in ROUTERS:
        app.include_router(router)
    app.router.routes.extend(demo_page.FILES)
    errors.install(app)
    described = partial(openapi_document.openapi, app, endpoints, streams)
    app.openapi = described  # type: ignore[method-assign]  # as FastAPI documents it
    recorded = Middleware(Recorded, metrics=metrics, paths=Paths(_paths()), tracing=tracing)
    app.outside = [recorded, *_middleware(settings, keys)]
    return app


def _options(settings: Settings) -> Options:
    """The service's part of the settings."""
    return Options(
        models=settings.models,
        parser=settings.parser,
        device=settings.device,
        threads=settings.threads,
        max_queue=settings.max_queue,
        max_batch_inputs=settings.max_batch_inputs,
        cache_items=settings.cache_items,
    )


def _paths() -> set[str]:
    """Every path that metrics and logs may name."""
    routes = (route for router in ROUTERS for route in router.routes)
    served = {route.path for route in routes if isinstance(route, APIRoute)}
    return served | demo_page.PATHS | {"/openapi.json"}


def _middleware(settings: Settings, keys: Keys) -> list[Middleware]:
    """Ours, the outermost first; the record of the request is outside of all."""
    layers = []
    if settings.cors_origins:
        exposed = [
            "Retry-After",
            "Server-Timing",
            *array_responses.HEADERS,
            kserve_binary.JSON_SIZE,
            "X-Ignored-Fields",
            "X-Request-Id",
            "X-Truncated",
            "X-Warning",
            "X-Windows",
        ]
        cross_origin = Middleware(
            CrossOrigin,
            allow_origins=settings.cors_origins,
            allow_methods=["*"],
            allow_headers=["*"],
            expose_headers=exposed,
        )
        layers.append(cross_origin)
    layers.append(Middleware(Failures))
    if keys.needed:
        layers.append(Middleware(ApiKey, keys=keys, pages=demo_page.PATHS))
    return [
        *layers,
        Middleware(BodyLimit, limit=settings.max_body_bytes),
        Middleware(
            FastPath,
            routers=ROUTERS,
            limit=settings.request_timeout,
            max_bytes=settings.max_body_bytes,
            max_inputs=settings.max_batch_inputs,
        ),
        Middleware(HeadAsGet),
    ]

"""create_app: settings -> the ASGI application, with the service's life inside its lifespan."""

import asyncio
import contextlib
import importlib.metadata
import logging
import time
from collections.abc import AsyncIterator

from fastapi import FastAPI
from fastapi.routing import APIRoute

from heedful.app import (
    compare,
    control,
    errors,
    explain,
    openai,
    playground,
    predict,
    routes,
    status,
)
from heedful.app.crew import Crew
from heedful.app.cross_origin import CrossOrigin
from heedful.app.metrics import Metrics
from heedful.app.middleware import ApiKey, BodyLimit, Head, Recorded
from heedful.app.requests import FastPath
from heedful.app.settings import Settings
from heedful.app.tracing import Tracing
from heedful.runtime.cores import usable_cores
from heedful.runtime.service import Options, Reloaded, Service

log = logging.getLogger("heedful.server")

ROUTERS = (
    routes.router,
    predict.router,
    compare.router,
    explain.router,
    openai.router,
    status.router,
    control.router,
    playground.router,
)


def create_app(settings: Settings, crew: Crew | None = None) -> FastAPI:
    """The application, alone or in one process of a crew. It answers while the models load, with
    503 for all that needs them.

    `app.state.starting` is the task that loads them, and holds the StartupError where they do not
    load. `app.state.reload()` reads the bundles anew, counts that and logs it; `reload_here` and
    `tell` are the parts of it. `app.state.company()` says what is wrong with the rest of the crew.
    `app.state.stop()` refuses new work and answers what is in hand; the lifespan ends with it.
    """
    metrics = Metrics(crew.metrics if crew else None)
    share = max(1, usable_cores() // (crew.size if crew else 1))
    tracing = Tracing.from_environment()
    service = Service(
        Options(
            models=settings.models,
            parser=settings.parser,
            device=settings.device,
            threads=settings.threads or share,
            parse_workers=settings.parse_workers or share,
            max_queue=settings.max_queue,
            max_batch_inputs=settings.max_batch_inputs,
            cache_items=settings.cache_items,
        ),
        metrics,
    )

    async def start() -> None:
        await service.start()
        metrics.models(service.cards.values(), service.provider)
        log.info("ready: %s on %s", ", ".join(service.cards), service.provider)

    async def reload() -> Reloaded:
        done = await service.reload()
        metrics.models(service.cards.values(), service.provider)
        return done

    def tell(done: Reloaded) -> None:
        metrics.reload(refused=bool(done.refused))
        for reason in done.refused:
            log.error("refused, what was served stays: %s", reason)
        log.info("reloaded: %s new, %s removed", _list(done.loaded), _list(done.removed))

    async def reload_and_tell() -> Reloaded:
        done = await reload()
        tell(done)
        return done

    async def stop() -> None:
        app.state.starting.cancel()
        await asyncio.wait({app.state.starting})
        await service.stop(0 if service.fault() else settings.grace)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.starting = asyncio.create_task(start())
        try:
            yield
        finally:
            await stop()
            if tracing:
                await asyncio.to_thread(tracing.close)

    app = FastAPI(
        title="Heedful",
        summary="Small self-attentive sentence encoders",
        version=importlib.metadata.version("heedful"),
        lifespan=lifespan,
        redoc_url=None,
        swagger_ui_oauth2_redirect_url=None,
        redirect_slashes=False,
        # app.tracing and app.metrics do that: twice would count twice.
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.state.settings, app.state.service, app.state.metrics = settings, service, metrics
    app.state.created = crew.started if crew else int(time.time())
    app.state.reload, app.state.reload_here, app.state.tell = reload_and_tell, reload, tell
    app.state.stop = stop
    app.state.company = lambda: None
    known = {"/docs", "/openapi.json", *playground.PATHS}
    for router in ROUTERS:
        app.include_router(router)
        known |= {route.path for route in router.routes if isinstance(route, APIRoute)}
    app.router.routes.extend(playground.FILES)
    errors.install(app)
    # The last one added is the outermost.
    app.add_middleware(FastPath, routers=ROUTERS, limit=settings.request_timeout)
    app.add_middleware(Head)
    app.add_middleware(BodyLimit, limit=settings.max_body_bytes)
    if settings.api_key is not None:
        app.add_middleware(ApiKey, key=settings.api_key.get_secret_value(), pages=playground.PATHS)
    if settings.cors_origins:
        app.add_middleware(
            CrossOrigin,
            allow_origins=settings.cors_origins,
            allow_methods=["*"],
            allow_headers=["*"],
            expose_headers=["Retry-After", "Server-Timing", "X-Request-Id", "X-Truncated"],
        )
    app.add_middleware(Recorded, metrics=metrics, routes=known, tracing=tracing)
    return app


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "none"

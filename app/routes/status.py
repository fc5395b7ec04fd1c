"""Models, versions, limits, health and metrics; and the reload of the bundles."""

import importlib.metadata
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from heedful.app import errors
from heedful.app.http import responses
from heedful.app.schemas import openapi_responses, response_bodies
from heedful.app.schemas.openapi_responses import error_responses
from heedful.app.settings import environment_name
from heedful.app.state import state_of
from heedful.runtime.errors import Unavailable
from heedful.runtime.service import Service

router = APIRouter(tags=["status"])
control_router = APIRouter(tags=["control"])
LIMITS = {"max_batch_inputs", "max_body_bytes", "max_queue", "request_timeout"}


@router.get("/models", response_model=response_bodies.Cards, responses=error_responses(401, 503))
async def models(request: Request) -> Response:
    """The card of each model, and the default model of each task."""
    service = ready_service(request)
    cards = [card.model_dump(mode="json") for card in service.registry.cards.values()]
    return responses.json({"models": cards, "defaults": service.registry.defaults})


@router.get("/info", response_model=response_bodies.Info, responses=error_responses(401, 503))
async def info(request: Request) -> Response:
    """The version, the device, the limits and the parser; TEI's fields about the default embedding model."""
    service = ready_service(request)
    settings = state_of(request.app).settings
    embedding = service.registry.cards[service.registry.defaults["embed"]]
    return responses.json(
        {
            "model_id": embedding.name,
            "served_model_name": embedding.name,
            "model_dtype": service.registry.precisions[embedding.name],
            "model_type": {"embedding": {"pooling": embedding.encoder.name}},
            "max_client_batch_size": settings.max_batch_inputs,
            "max_input_length": embedding.max_tokens,
            "auto_truncate": settings.truncate,
            "version": importlib.metadata.version("heedful"),
            "device": "cuda" if service.registry.provider.startswith("CUDA") else "cpu",
            "provider": service.registry.provider,
            "limits": settings.model_dump(include=LIMITS),
            "models": list(service.registry.cards),
            "versions": {name: card.version for name, card in service.registry.cards.items()},
            "precision": service.registry.precisions,
            "parser": service.parser,
            "golden": service.deviations,
        }
    )


@router.get("/health", response_model=response_bodies.Status)
async def health() -> Response:
    """Whether the process answers; says nothing about the models."""
    return responses.json({"status": "ok"})


@router.get("/ready", response_model=response_bodies.Readiness, responses=error_responses(422, 503))
async def ready(
    request: Request,
    deep: Annotated[
        bool, Query(description="Also run the golden sentences of every model.")
    ] = False,
) -> Response:
    """Whether every model is loaded and warm and every worker is alive."""
    service = ready_processes(request)
    fields: dict[str, Any] = {"status": "ready", "refused": service.refused}
    if not deep:
        return responses.json(fields)
    moved = await service.self_test()
    state_of(request.app).metrics.golden(service.deviations)
    if moved:
        changes = "; ".join(f"{name}: {', '.join(words)}" for name, words in moved.items())
        raise Unavailable(f"golden vectors: {changes}", code="golden_moved")
    return responses.json({**fields, "golden": service.deviations})


@router.get(
    "/metrics",
    response_class=Response,
    responses=openapi_responses.text("text/plain", "application/openmetrics-text"),
)
async def metrics(request: Request) -> Response:
    """Metrics in Prometheus' format."""
    accepted = responses.accepted(request.scope)
    page, content_type = state_of(request.app).metrics.page(accepted)
    return Response(page, headers={"Content-Type": content_type})


@control_router.post(
    "/models/reload",
    response_model=response_bodies.Reloaded,
    responses=error_responses(401, 403, 409, 413, 500, 503),
)
async def reload(request: Request) -> Response:
    """Reload the bundles from their folder. Needs an API key; SIGHUP does the same.

    409 when a bundle was refused: its model stays as it was, all others are updated.
    """
    state = state_of(request.app)
    if not state.keys.needed:
        raise errors.Refused(
            f"this needs an API key: set {environment_name('api_key')} and send it, or send the "
            "process SIGHUP instead",
            code="api_key_not_set",
        )
    result = await state.reload()
    if result.refused:
        raise errors.Refused("; ".join(result.refused), code="bundle_refused")
    return responses.json(
        {name: names for name, names in asdict(result).items() if name != "refused"}
    )


def ready_processes(request: Request) -> Service:
    """The service of this process. Raises Unavailable with the reason when a serving process is not ready."""
    service = ready_service(request)
    if reason := state_of(request.app).slot.table.status():
        raise Unavailable(reason, code="not_ready")
    return service


def ready_service(request: Request) -> Service:
    """The service. Raises Unavailable with the reason when it is not ready."""
    service = state_of(request.app).service
    if reason := service.ready():
        raise Unavailable(reason, code="not_ready")
    return service

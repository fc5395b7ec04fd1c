"""The GET routes: what is served, on what, and whether it is well."""

import importlib.metadata

from fastapi import APIRouter, Request
from starlette.responses import Response

from heedful.app import answers, schemas
from heedful.runtime.errors import Unavailable
from heedful.runtime.service import Service

router = APIRouter(tags=["status"])


@router.get("/models", responses=answers.documented(schemas.Cards, 401, 503))
async def models(request: Request) -> Response:
    """What each model is, was made from, and scores, and which one does a task where none is named."""
    service = ready_service(request)
    cards = [card.model_dump(mode="json") for card in service.cards.values()]
    return answers.json({"models": cards, "defaults": service.defaults})


@router.get("/v1/models", responses=answers.documented(schemas.OpenAIModels, 401, 503))
async def openai_models(request: Request) -> Response:
    """The same, as OpenAI's list."""
    created = request.app.state.created
    return answers.json(
        {
            "object": "list",
            "data": [
                {"id": name, "object": "model", "created": created, "owned_by": "heedful"}
                for name in ready_service(request).cards
            ],
        }
    )


@router.get("/info", responses=answers.documented(schemas.Info, 401, 503))
async def info(request: Request) -> Response:
    """The version, what the models run on, the limits, the parser."""
    service = ready_service(request)
    settings = request.app.state.settings
    return answers.json(
        {
            "version": importlib.metadata.version("heedful"),
            "device": "cuda" if service.provider.startswith("CUDA") else "cpu",
            "provider": service.provider,
            "limits": {
                "max_batch_inputs": settings.max_batch_inputs,
                "max_body_bytes": settings.max_body_bytes,
                "max_queue": settings.max_queue,
                "request_timeout": settings.request_timeout,
            },
            "models": list(service.cards),
            "precision": service.precisions,
            # A bundle refuses every parser but its own: they all name the one in use.
            "parser": next(card.parser.model_dump() for card in service.cards.values()),
        }
    )


@router.get("/health", responses=answers.documented(schemas.Status))
async def health() -> Response:
    """Answers while the process can; says nothing of the models."""
    return answers.json({"status": "ok"})


@router.get("/ready", responses=answers.documented(schemas.Readiness, 503))
async def ready(request: Request) -> Response:
    """Whether every model is loaded and warm and every worker lives."""
    service = ready_service(request)
    if reason := request.app.state.company():
        raise Unavailable(reason, code="not_ready")
    return answers.json({"status": "ready", "refused": service.refused})


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def metrics(request: Request) -> Response:
    """For Prometheus."""
    page, content_type = request.app.state.metrics.page(request.headers.get("accept", ""))
    return Response(page, headers={"Content-Type": content_type})


def ready_service(request: Request) -> Service:
    """The service; Unavailable with the reason where it is not ready."""
    service: Service = request.app.state.service
    if reason := service.ready():
        raise Unavailable(reason, code="not_ready")
    return service

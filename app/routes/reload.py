"""The route that reloads the bundles."""

from dataclasses import asdict

from fastapi import APIRouter, Request
from starlette.responses import Response

from heedful.app import errors
from heedful.app.http import responses
from heedful.app.schemas import response_bodies
from heedful.app.settings import environment_name
from heedful.app.state import state_of

router = APIRouter(tags=["control"])


@router.post(
    "/models/reload",
    responses=responses.documented(response_bodies.Reloaded, 401, 403, 409, 413, 500, 503),
)
async def reload(request: Request) -> Response:
    """Reload the bundles from their folder. Needs an API key; SIGHUP does the same.

    409 when a bundle was refused: its model stays as it was, all others are updated.
    """
    state = state_of(request.app)
    if not state.keys.needed:
        raise errors.Forbidden(
            f"this needs an API key: set {environment_name('api_key')} and send it, or send the "
            "process SIGHUP instead",
            code="api_key_not_set",
        )
    result = await state.reload()
    if result.refused:
        raise errors.BundleRefused("; ".join(result.refused))
    return responses.json(
        {name: found for name, found in asdict(result).items() if name != "refused"}
    )

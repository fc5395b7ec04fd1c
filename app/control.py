"""The route that changes what is served."""

from dataclasses import asdict

from fastapi import APIRouter, Request
from starlette.responses import Response

from heedful.app import answers, errors, schemas
from heedful.app.settings import environment_name

router = APIRouter(tags=["control"])


@router.post(
    "/models/reload", responses=answers.documented(schemas.Reloaded, 401, 403, 409, 500, 503)
)
async def reload(request: Request) -> Response:
    """Serve what the folder of bundles holds now. Needs an API key; SIGHUP does the same.

    409 where a bundle was refused: the model of its name stays as it was, all others are changed.
    """
    if request.app.state.settings.api_key is None:
        raise errors.Forbidden(
            f"this needs an API key: set {environment_name('api_key')} and send it, or send the "
            "process SIGHUP instead",
            code="api_key_not_set",
        )
    done = await request.app.state.reload()
    if done.refused:
        raise errors.BundleRefused("; ".join(done.refused))
    return answers.json({name: found for name, found in asdict(done).items() if name != "refused"})

"""POST /: requests that TEI's clients and Hugging Face's InferenceClient send to a service's base URL."""

from typing import Annotated

from fastapi import APIRouter
from pydantic import Tag
from starlette.responses import Response

from heedful.app.http.inference_route import InferenceRequest, InferenceRoute
from heedful.app.routes import core
from heedful.app.routes.compat import similarity
from heedful.app.schemas import openapi_responses, request_bodies, response_bodies
from heedful.app.schemas.base import ANY_OF, by_tag

router = APIRouter(route_class=InferenceRoute, tags=["models"])


def _task(value: object) -> str | None:
    """The task, which InferenceClient does not name: similarity has `source_sentence`, classification `parameters`."""
    if not isinstance(value, dict):
        return None
    inputs = value.get("inputs")
    if isinstance(inputs, dict) and "source_sentence" in inputs:
        return "<similarity>"
    return "<embed>" if value.get("parameters") is None else "<classify>"


AnyRequest = Annotated[
    Annotated[request_bodies.EmbedRequest, Tag("<embed>")]
    | Annotated[request_bodies.ClassifyRequest, Tag("<classify>")]
    | Annotated[similarity.SimilarityRequest, Tag("<similarity>")],
    by_tag(_task, "must be an object with inputs"),
    ANY_OF,
]


@router.post(
    "/",
    response_model=list[list[float]] | list[float] | response_bodies.Classified,
    responses=openapi_responses.IN_BYTES,
)
async def root(body: AnyRequest, request: InferenceRequest) -> Response:
    """As /embed; as /classify with `parameters`; as /similarity with a source sentence."""
    if isinstance(body, request_bodies.EmbedRequest):
        return await core.embed(body, request)
    if isinstance(body, request_bodies.ClassifyRequest):
        return await core.classify(body, request)
    return await similarity.similarity(body, request)

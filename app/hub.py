"""POST /: what TEI and Hugging Face's InferenceClient send to a service's own address."""

from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import Discriminator, GetJsonSchemaHandler, Tag
from pydantic_core import CoreSchema
from starlette.responses import Response

from heedful.app import answer_schemas, answers, array_answers, compare, routes, schemas
from heedful.app.fast_path import InferenceRoute

router = APIRouter(route_class=InferenceRoute, responses=answers.ERRORS, tags=["models"])


def _task(value: object) -> str | None:
    """InferenceClient names no task: one sends `source_sentence`, another always `parameters`."""
    if not isinstance(value, dict):
        return None
    inputs = value.get("inputs")
    if isinstance(inputs, dict) and "source_sentence" in inputs:
        return "<similarity>"
    return "<embed>" if value.get("parameters") is None else "<classify>"


class _AnyOf:
    """A text alone fits two of the requests, so that the document may not say oneOf."""

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        written = handler(schema)
        written["anyOf"] = written.pop("oneOf")
        return written


AnyRequest = Annotated[
    Annotated[schemas.EmbedRequest, Tag("<embed>")]
    | Annotated[schemas.ClassifyRequest, Tag("<classify>")]
    | Annotated[compare.SimilarityRequest, Tag("<similarity>")],
    Discriminator(
        _task,
        custom_error_type="object_type",
        custom_error_message="must be an object with inputs",
    ),
    _AnyOf(),
]


@router.post(
    "/",
    responses=answers.in_bytes(
        answers.documented(
            list[list[float]]
            | list[float]
            | list[answer_schemas.Label]
            | list[list[answer_schemas.Label]]
            | answer_schemas.TrustedLabels
            | list[answer_schemas.TrustedLabels]
        ),
        array_answers.HEADERS,
    ),
)
async def root(body: AnyRequest, request: Request) -> Response:
    """As /embed; as /classify with `parameters`; as /similarity with a source sentence."""
    if isinstance(body, schemas.EmbedRequest):
        return await routes.embed(body, request)
    if isinstance(body, schemas.ClassifyRequest):
        return await routes.classify(body, request)
    return await compare.similarity(body, request)

"""A route's answers in the OpenAPI document."""

from collections.abc import Mapping
from typing import Any

from heedful.app.schemas import response_bodies

BYTES = "application/octet-stream"
BYTES_CONTENT = {BYTES: {"schema": {"type": "string", "format": "binary"}}}
"""Bytes in the OpenAPI document."""

Documented = dict[int | str, dict[str, Any]]

_ERRORS: Documented = {
    status: {"model": response_bodies.ErrorEnvelope, "description": description}
    for status, description in {
        400: "The body is not JSON.",
        401: "The API key is missing or wrong.",
        403: "No API key is set, and this needs one.",
        404: "Unknown model.",
        409: "A bundle was refused: the model served before stays.",
        413: "The body or the number of inputs exceeds its limit.",
        422: "A field is wrong.",
        429: "The queue is full: try again after Retry-After seconds.",
        500: "The service failed.",
        503: "Not ready, or shutting down.",
        504: "The request's time limit passed.",
    }.items()
}
ERRORS = {status: error for status, error in _ERRORS.items() if status not in (403, 409)}
"""The errors of an inference route."""


def path_parameters(*names: str) -> dict[str, Any]:
    """A path's parameters in the OpenAPI document. Declared as arguments, they would bring FastAPI's 422."""
    parameter = {"in": "path", "required": True, "schema": {"type": "string"}}
    return {"parameters": [{"name": name, **parameter} for name in names]}


def documented(model: Any, *errors: int) -> Documented:
    """A route's 200 and errors for the OpenAPI document. Answers are not validated."""
    return {200: {"model": model}, **{status: _ERRORS[status] for status in errors}}


def text(*media: str) -> Documented:
    """A route's 200 for the OpenAPI document: a text of one of these media types."""
    return {200: {"content": {kind: {"schema": {"type": "string"}} for kind in media}}}


def in_bytes(responses: Documented, headers: Mapping[str, str]) -> Documented:
    """The responses of a route whose 200 may be bytes too, with these headers then: name -> description."""
    content = {
        "content": BYTES_CONTENT,
        "headers": {
            name: {"description": f"Of an answer in bytes: {meaning}", "schema": {"type": "string"}}
            for name, meaning in headers.items()
        },
    }
    return {**responses, 200: responses[200] | content}

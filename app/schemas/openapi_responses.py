"""A route's answers in the OpenAPI document, other than the model of its 200."""

from typing import Any

from pydantic import BaseModel

from heedful.app.schemas.response_bodies import ErrorEnvelope

BYTES = "application/octet-stream"

ARRAY_HEADERS = {
    "X-Dtype": "float32 or float16, little-endian; int8 or uint8.",
    "X-Shape": "rows,columns.",
}
"""Headers of an answer in bytes, and what they say."""

Documented = dict[int | str, dict[str, Any]]

_ERRORS = {
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
}

IN_BYTES: Documented = {
    200: {
        "content": {BYTES: {"schema": {"type": "string", "format": "binary"}}},
        "headers": {
            name: {"description": f"Of an answer in bytes: {meaning}", "schema": {"type": "string"}}
            for name, meaning in ARRAY_HEADERS.items()
        },
    }
}
"""The 200 of a route that may answer bytes too."""


def error_responses(*statuses: int, envelope: type[BaseModel] = ErrorEnvelope) -> Documented:
    """A route's errors, whose bodies are such envelopes."""
    return {status: {"model": envelope, "description": _ERRORS[status]} for status in statuses}


def text(*media: str) -> Documented:
    """A route's 200: a text of one of these media types."""
    return {200: {"content": {kind: {"schema": {"type": "string"}} for kind in media}}}

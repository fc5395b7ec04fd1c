"""The bytes of an answer, and its description in the OpenAPI document."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import orjson
from starlette.responses import Response

from heedful.app.schemas import response_bodies
from heedful.runtime.bundles.card import Card
from heedful.runtime.errors import BadInput

ROWS_AT_ONCE = 64
"""Rows of an answer that are written without a pause: about 1 ms."""

BYTES = "application/octet-stream"
BYTES_CONTENT = {BYTES: {"schema": {"type": "string", "format": "binary"}}}
"""Bytes in the OpenAPI document."""
LONGEST = 2.0**63
"""orjson reads integers that do not fit into 64 bits as floats of this size and more."""

T = TypeVar("T")

Documented = dict[int | str, dict[str, Any]]

ERRORS: Documented = {
    status: {"model": response_bodies.ErrorEnvelope, "description": description}
    for status, description in {
        400: "The body is not JSON.",
        401: "The API key is missing or wrong.",
        404: "Unknown model.",
        413: "The body or the number of inputs exceeds its limit.",
        422: "A field is wrong.",
        429: "The queue is full: try again after Retry-After seconds.",
        500: "The service failed.",
        503: "Not ready, or shutting down.",
        504: "The request's time limit passed.",
    }.items()
}

FURTHER_ERRORS: Documented = {
    status: {"model": response_bodies.ErrorEnvelope, "description": description}
    for status, description in {
        403: "No API key is set, and this needs one.",
        409: "A bundle was refused: the model served before stays.",
    }.items()
}
"""Those of no inference route."""


def path_parameters(*names: str) -> dict[str, Any]:
    """A path's parameters in the OpenAPI document. Declared as arguments, they would bring FastAPI's 422."""
    about = {"in": "path", "required": True, "schema": {"type": "string"}}
    return {"parameters": [{"name": name, **about} for name in names]}


def documented(model: Any, *errors: int) -> Documented:
    """A route's 200 and errors for the OpenAPI document. Answers are not validated."""
    known = {**ERRORS, **FURTHER_ERRORS}
    return {200: {"model": model}, **{status: known[status] for status in errors}}


def text(*media: str) -> Documented:
    """A route's 200 for the OpenAPI document: a text of one of these media types."""
    return {200: {"content": {one: {"schema": {"type": "string"}} for one in media}}}


def in_bytes(responses: Documented, headers: Mapping[str, str]) -> Documented:
    """The responses of a route whose 200 may be bytes too, with these headers then: name -> description."""
    about = {
        "content": BYTES_CONTENT,
        "headers": {
            name: {"description": f"Of an answer in bytes: {said}", "schema": {"type": "string"}}
            for name, said in headers.items()
        },
    }
    return {**responses, 200: responses[200] | about}


def json(value: object) -> Response:
    """orjson takes 10 µs for 600 floats of a float32 array; json takes 260 µs from a list."""
    return JSONBytes(orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY))


def repeatable(value: T, field: str) -> T:
    """What a client has sent, if the answer can repeat it. Raises BadInput."""
    if isinstance(value, float) and abs(value) >= LONGEST:
        raise BadInput(f"{field}: is a number of more than 64 bits; send a text", param=field)
    try:
        orjson.dumps(value)
    except TypeError as error:  # half of a surrogate pair, or an integer of more than 64 bits
        raise BadInput(
            f"{field}: the answer cannot repeat it: {error}; send another", param=field
        ) from None
    return value


class JSONBytes(Response):
    """A whole answer with its two headers, for which starlette would ask what else the answer could be."""

    media_type = "application/json"

    def __init__(self, body: bytes) -> None:
        self.status_code, self.background, self.body = 200, None, body
        self.raw_headers = [
            (b"content-length", b"%d" % len(body)),
            (b"content-type", b"application/json"),
        ]


async def rows(values: Sequence[Any] | npt.NDArray[Any]) -> bytes:
    """The JSON of a list. Others go on between parts of it: 512 vectors take 5 ms or more."""
    option = orjson.OPT_SERIALIZE_NUMPY
    if len(values) <= ROWS_AT_ONCE:
        return orjson.dumps(values, option=option)
    parts = []
    for begin in range(0, len(values), ROWS_AT_ONCE):
        await asyncio.sleep(0)
        parts.append(orjson.dumps(values[begin : begin + ROWS_AT_ONCE], option=option)[1:-1])
    return b"[" + b",".join(parts) + b"]"


def ranked(
    scores: npt.NDArray[Any], card: Card, top_k: int | None = None, *, raw: bool = False
) -> list[dict[str, Any]]:
    """Labels with their scores (C,), best first, at most `top_k`.

    Where the model abstains the label null with the best score comes before them; never of `raw` scores, which are
    no probabilities.
    """
    best = np.argsort(-scores, kind="stable")[:top_k]
    found = [{"label": card.labels[i], "score": scores[i]} for i in best]
    if raw or card.abstain is None or scores[best[0]] >= card.abstain:
        return found
    return [{"label": None, "score": scores[best[0]]}, *found]

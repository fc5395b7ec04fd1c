"""Errors -> answers: the only place that maps errors to statuses and to their envelope.

{"error": {"message": str, "type": str, "param": str or null, "code": str}}

The Open Inference Protocol's `error` is the message, and the other fields are next to it.
"""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from itertools import islice
from typing import Any

import orjson

from heedful.runtime.errors import (
    BadInput,
    InferenceFailed,
    OutOfMemory,
    Overloaded,
    RequestError,
    TimedOut,
    TooManyInputs,
    Unavailable,
    UnknownModel,
)


class MalformedBody(RequestError):
    """The body is not JSON, or not declared as JSON."""

    code = "invalid_json"


class BodyTooLarge(RequestError):
    code = "body_too_large"


class Refused(RequestError):
    """A request that HTTP or a protocol over it forbids, with a code of `CODES`."""


class Internal(RequestError):
    """An internal error. The log has the cause, the answer does not."""

    code = "internal_error"

    def __init__(self) -> None:
        super().__init__("the service failed; its log has the cause under this request id")


STATUS: Mapping[type[RequestError], int] = {
    MalformedBody: 400,
    UnknownModel: 404,
    BodyTooLarge: 413,
    TooManyInputs: 413,
    BadInput: 422,
    Overloaded: 429,
    Internal: 500,
    InferenceFailed: 500,
    OutOfMemory: 503,
    Unavailable: 503,
    TimedOut: 504,
}

CODES: Mapping[str, int] = {
    "cors_refused": 400,
    "invalid_http": 400,
    "unauthorized": 401,
    "api_key_not_set": 403,
    "route_not_found": 404,
    "method_not_allowed": 405,
    "request_timeout": 408,  # a head that does not come in time
    "bundle_refused": 409,
    "url_too_long": 414,
    "headers_too_large": 431,
}
"""Statuses of `Refused`."""

TYPE: Mapping[int, str] = {
    401: "authentication_error",
    403: "permission_error",
    409: "conflict_error",
    429: "rate_limit_error",
    500: "server_error",
    503: "server_error",
    504: "timeout_error",
}
"""OpenAI's error types; each other status is an "invalid_request_error"."""

HEADERS: Mapping[str, Mapping[str, str]] = {
    "unauthorized": {"WWW-Authenticate": "Bearer"},
    "body_too_large": {"Connection": "close"},  # the rest of the body stays unread
    "overloaded": {"Retry-After": str(Overloaded.retry_after)},
}


def body_too_large(limit: int) -> BodyTooLarge:
    """For a body of more than `limit` bytes, before or after decompression."""
    return BodyTooLarge(f"the body is larger than {limit} bytes; send fewer inputs in one request")


MAX_NAMES, MAX_NAME = 5, 40
"""Fields that a message quotes, and their characters."""
MESSAGES: Mapping[str, str] = {
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "dict_type": "must be an object",
    "float_type": "must be a number",
    "int_parsing": "must be an integer",
    "int_type": "must be an integer",
    "list_type": "must be a list",
    "string_type": "must be a string",
    "string_too_short": "must not be empty",
    "too_short": "must not be empty",
    "too_long": "must have at most {max_length} items",
}
"""Our messages for pydantic's errors whose own messages speak of Python. All minima in our schemas are 1."""


def status_of(error: RequestError) -> int:
    if isinstance(error, Refused):
        return CODES[error.code]
    return next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)


def envelope(error: RequestError, *, text: bool = False) -> bytes:
    """The body of an error's answer; with `text` the Open Inference Protocol's."""
    message = _encodable(str(error))
    fields = {
        "type": TYPE.get(status_of(error), "invalid_request_error"),
        "param": None if error.param is None else _encodable(error.param),
        "code": error.code,
    }
    if text:
        return orjson.dumps({"error": message, **fields})
    return orjson.dumps({"error": {"message": message, **fields}})


def raw_response(error: RequestError, request_id: str) -> bytes:
    """A complete HTTP response that closes its connection, for errors that no application answers."""
    status, body = HTTPStatus(status_of(error)), envelope(error)
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
        f"x-request-id: {request_id}\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + body


def bad_input(errors: Sequence[Any]) -> BadInput | TooManyInputs:
    """pydantic's first error as ours: "inputs[3]: must be a string"."""
    first = errors[0]
    param = _field(first["loc"])
    kind = first["type"]
    if kind == "too_many_inputs":
        return TooManyInputs(f"{param} {first['msg']}", param=param)
    if kind == "missing":
        sent = ", ".join(name[:MAX_NAME] for name in islice(first.get("input") or (), MAX_NAMES))
        message = "is required" + (f" (sent: {sent})" if sent and param else "")
        code = "missing_field"
    elif kind == "extra_forbidden":
        message, code = "does not belong here; GET /docs lists the fields", "unknown_field"
    else:
        message = first["msg"].replace("Input should be", "must be").removeprefix("Value error, ")
        if kind in MESSAGES:
            message = MESSAGES[kind].format_map(first.get("ctx", {}))
        code = "invalid_type" if kind.endswith("_type") else "invalid_value"
        code = {"unsupported": "unsupported", "value_error": "invalid_input"}.get(kind, code)
    return BadInput(f"{param or 'the body'}: {message}", param=param, code=code)


def _field(location: Sequence[str | int]) -> str | None:
    """("pairs", 0, "premise") -> "pairs[0].premise"; a union's tag looks like "<this>"."""
    path = ""
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        elif not part.startswith("<"):
            path += f".{part}" if path else part
    return path or None


def _encodable(text: str) -> str:
    """Escape lone surrogates, which UTF-8 cannot encode: messages may quote client text."""
    return text.encode("utf-8", "backslashreplace").decode()

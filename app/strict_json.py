"""JSON that is read strictly."""

import contextlib
import json
from typing import Any, NoReturn

import orjson

from heedful.app.errors import MalformedBody

MAX_DEPTH = 64
"""Levels of lists and objects in a body: no route reads as many, and what walks them uses the stack."""


def parse(body: bytes) -> Any:
    """Read JSON strictly: no NaN, no Infinity, UTF-8, at most MAX_DEPTH deep. Raises MalformedBody.

    Lone surrogates pass: the runtime refuses them and names the field.
    """
    value = _loads(body)
    if body.count(b"[") + body.count(b"{") > MAX_DEPTH:  # fewer cannot be deeper
        _check_depth(value)
    return value


def _check_depth(value: object) -> None:
    """Level by level. Raises MalformedBody."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        containers = [each for each in level if isinstance(each, (dict, list))]
        if not containers:
            return
        level = []
        for each in containers:
            level += each.values() if isinstance(each, dict) else each
    raise MalformedBody(
        f"the body nests lists and objects more than {MAX_DEPTH} deep: send them flatter"
    )


def _loads(body: bytes) -> Any:
    """Raises MalformedBody."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if b"\\u" in body:
            with contextlib.suppress(ValueError, RecursionError):
                return json.loads(body.decode(), parse_constant=_refuse, parse_float=_finite)
        raise MalformedBody(f"the body is not JSON: {error}") from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _finite(digits: str) -> float:
    """Refuse a number that overflows to infinity, as orjson does."""
    number = float(digits)
    if abs(number) == float("inf"):
        raise ValueError(digits)
    return number

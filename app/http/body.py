"""JSON that is read strictly."""

import contextlib
import json
from typing import Any, NoReturn

import numpy as np
import orjson

from heedful.app.errors import BodyTooLarge, MalformedBody

MAX_DEPTH = 64
"""Levels of lists and objects in a body: no route reads as many, and what walks them uses the stack."""
MAX_CONTAINERS = 2**21
"""Lists and objects in a body. 16 MiB of trees hold 1.3 million if all their words are of one letter."""

_STEPS = bytes.maketrans(b'"[{]}', b"\x00\x01\x01\xff\xff")
_OTHERS = bytes(set(range(256)) - set(b'"[{]}'))


def parse(body: bytes) -> Any:
    """Read JSON strictly: no NaN, no Infinity, UTF-8, at most MAX_DEPTH deep and MAX_CONTAINERS lists and objects.

    Lone surrogates pass: the runtime refuses them and names the field. Raises MalformedBody, BodyTooLarge.
    """
    if body.count(b"[") + body.count(b"{") > MAX_DEPTH:  # fewer are neither too deep nor too many
        _check_containers(body)
    return _loads(body)


def _check_containers(body: bytes) -> None:
    """Before the body is parsed: that would hold the interpreter's lock, and take 30 times its bytes.

    Raises MalformedBody, BodyTooLarge.
    """
    unescaped = body.replace(rb"\\", b"").replace(rb"\"", b"")
    # 1 where a list or an object begins, -1 where one ends, 0 for a quotation mark.
    steps = np.frombuffer(unescaped.translate(_STEPS, _OTHERS), np.int8)
    in_text = np.logical_xor.accumulate(steps == 0)
    steps = np.where(in_text, np.int8(0), steps)
    containers = np.count_nonzero(steps == 1)
    if containers > MAX_CONTAINERS:
        raise BodyTooLarge(
            f"the body holds {containers} lists and objects, more than {MAX_CONTAINERS}: "
            "send several requests"
        )
    if np.cumsum(steps, dtype=np.int32).max() > MAX_DEPTH:
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

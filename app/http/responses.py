"""The bytes of an answer: JSON, or arrays for clients that ask for `Accept: application/octet-stream`."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import orjson
from starlette.responses import Response
from starlette.types import Scope

from heedful.app.schemas.openapi_responses import BYTES
from heedful.runtime.bundles.card import Card
from heedful.runtime.engine.work import Steps
from heedful.runtime.errors import BadInput

ROWS_AT_ONCE = 64
"""Rows of an answer that are written without a pause: 1 to 2 ms."""

INTEGER_LIMIT = 2.0**63
"""orjson reads integers that do not fit into 64 bits as floats of this size and more."""

DTYPES: Mapping[str, str] = {"float32": "<f4", "float16": "<f2"}
"""The dtypes that a client may name, and numpy's names. The first is the default."""

T = TypeVar("T")


def json(value: object) -> Response:
    """An answer in JSON. orjson takes 10 µs for 600 floats of a float32 array; json takes 260 µs from a list."""
    return written_json(orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY))


def repeatable(value: T, field: str) -> T:
    """A client's value, if the answer can repeat it. Raises BadInput."""
    if isinstance(value, float) and abs(value) >= INTEGER_LIMIT:
        raise BadInput(f"{field}: is a number of more than 64 bits; send a text", param=field)
    try:
        orjson.dumps(value)
    except TypeError as error:  # half of a surrogate pair, or an integer of more than 64 bits
        raise BadInput(
            f"{field}: the answer cannot repeat it: {error}; send another", param=field
        ) from None
    return value


def written_json(content: bytes) -> Response:
    """An answer whose body is this JSON."""
    return Response(content, media_type="application/json")


def rows(values: Sequence[Any] | npt.NDArray[Any]) -> Steps[bytes]:
    """The JSON of a list, as steps of a request: 512 vectors take 5 ms or more."""
    parts = []
    for begin in range(0, len(values), ROWS_AT_ONCE):
        if begin:
            yield None
        chunk = values[begin : begin + ROWS_AT_ONCE]
        parts.append(orjson.dumps(chunk, option=orjson.OPT_SERIALIZE_NUMPY)[1:-1])
    return b"[" + b",".join(parts) + b"]"


def base64_of(row: npt.NDArray[Any]) -> str:
    """A vector's bytes, little-endian, in base64."""
    return base64.b64encode(row.astype(row.dtype.newbyteorder("<")).tobytes()).decode()


def ranked(
    scores: npt.NDArray[Any], card: Card, top_k: int | None = None, *, raw: bool = False
) -> list[dict[str, Any]]:
    """Labels with their scores (C,), best first, at most `top_k`.

    Where the model abstains, the label null with the best score comes first. It never abstains with `raw` scores, which
    are no probabilities.
    """
    best = np.argsort(-scores, kind="stable")[:top_k]
    labels = [{"label": card.labels[i], "score": scores[i]} for i in best]
    if raw or card.abstain is None or scores[best[0]] >= card.abstain:
        return labels
    return [{"label": None, "score": scores[best[0]]}, *labels]


def wanted_dtype(scope: Scope) -> str | None:
    """The dtype in which the client wants an array; None if it prefers JSON.

    Of bytes and JSON with the same weight, the client prefers the one that it names first. Raises BadInput for
    another dtype than DTYPES.
    """
    weights = accepted(scope)
    formats = [name for name in weights if name.partition(";")[0] in (BYTES, "application/json")]
    best = max(formats, key=lambda name: weights[name], default="")  # the first of equals
    media, _, parameter = best.partition(";")
    if media != BYTES or not weights[best]:
        return None
    dtype = parameter.removeprefix("dtype=") if parameter else next(iter(DTYPES))
    if dtype not in DTYPES:
        known = " or ".join(f"{BYTES};dtype={name}" for name in DTYPES)
        raise BadInput(f"Accept: is {best[:100]!r}; send {known}", param="Accept")
    return dtype


def array_bytes(rows: npt.NDArray[Any], dtype: str) -> Response:
    """Rows (N, D) one after the other, little-endian, of one of DTYPES; int8 and uint8 are written as they are."""
    if rows.dtype.itemsize == 1:
        dtype = rows.dtype.name
    headers = {"X-Dtype": dtype, "X-Shape": ",".join(map(str, rows.shape))}
    return Response(rows.astype(DTYPES.get(dtype, dtype)).tobytes(), 200, headers, BYTES)


def accepted(scope: Scope) -> dict[str, float]:
    """The media types of `Accept` with their weights: "a;v=1;q=0.5, b" -> {"a;v=1": 0.5, "b": 1.0}.

    0 is the weight of a type that the client does not accept, or whose weight is no number. Several lines are one list
    (RFC 9110, 5.3).
    """
    weights: dict[str, float] = {}
    lines = [value for name, value in scope["headers"] if name == b"accept"]
    for offer in b",".join(lines).decode("latin-1").lower().split(","):
        media_type, *parameters = (part.strip() for part in offer.split(";"))
        weight = "1"
        for parameter in parameters:
            if parameter.startswith("q="):
                weight = parameter[2:]
            else:
                media_type += f";{parameter}"
        weights[media_type] = _weight(weight)
    return weights


def _weight(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0

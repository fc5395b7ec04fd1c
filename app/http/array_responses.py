"""Vectors as bytes, for clients that ask by `Accept: application/octet-stream`: they are read without a parser."""

from collections.abc import Mapping

from starlette.responses import Response
from starlette.types import Scope

from heedful.app.http import request_record
from heedful.app.http.responses import BYTES
from heedful.runtime.errors import BadInput
from heedful.text.arrays import Floats

HEADERS = {"X-Dtype": "float32 or float16, little-endian.", "X-Shape": "rows,columns."}
"""Of such an answer."""
DTYPES: Mapping[str, str] = {"float32": "<f4", "float16": "<f2"}
"""What a client may ask for, and numpy's name of it. The first is meant where none is named."""


def wanted(scope: Scope) -> str | None:
    """The dtype in which the client wants an array; None if it would rather have JSON.

    Of bytes and JSON with the same weight, the client wants the one that it names first. Raises BadInput for
    another dtype than DTYPES.
    """
    offered = request_record.accepts(scope, b"accept")
    formats = [what for what in offered if what.partition(";")[0] in (BYTES, "application/json")]
    best = max(formats, key=lambda what: offered[what], default="")  # the first of several
    media, _, parameter = best.partition(";")
    if media != BYTES or not offered[best]:
        return None
    dtype = parameter.removeprefix("dtype=") if parameter else next(iter(DTYPES))
    if dtype not in DTYPES:
        known = " or ".join(f"{BYTES};dtype={name}" for name in DTYPES)
        raise BadInput(f"Accept: is {best[:100]!r}; send {known}", param="Accept")
    return dtype


class ArrayBytes(Response):
    """Rows (N, D) one after the other, little-endian."""

    def __init__(self, rows: Floats, dtype: str) -> None:
        """`dtype` is one of DTYPES."""
        shape = ",".join(map(str, rows.shape))
        super().__init__(
            rows.astype(DTYPES[dtype]).tobytes(),
            headers={"X-Dtype": dtype, "X-Shape": shape},
            media_type=BYTES,
        )

"""Rows of float32 -> JSON, by `json.c`: the bytes that orjson writes, in half of its time."""

import ctypes
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from heedful.kernels import library, path_of

MOST_BYTES = 24
"""Of a number, and what is written beyond its end."""


class JSONRows:
    """For one thread at a time."""

    def __init__(self, built: Path) -> None:
        # PyDLL: the call would else release the interpreter's lock, and wait to get it back.
        self._write = ctypes.PyDLL(str(built)).write_json
        self._write.argtypes = (ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
        self._write.restype = ctypes.c_int64
        self._buffer = ctypes.create_string_buffer(0)

    def __call__(self, rows: npt.NDArray[np.float32]) -> bytes:
        """The JSON of an array (N, D). What is no number is null."""
        rows = np.ascontiguousarray(rows)
        room = MOST_BYTES * (rows.size + len(rows) + 2)
        if len(self._buffer) < room:
            self._buffer = ctypes.create_string_buffer(room)
        size = self._write(rows.ctypes.data, *rows.shape, ctypes.addressof(self._buffer))
        return ctypes.string_at(self._buffer, size)


@cache
def json_rows() -> JSONRows | None:
    """None where orjson is as fast: without AVX2, or where the kernels are not built."""
    built = library()
    return None if built is None or built == path_of("plain") else JSONRows(built)

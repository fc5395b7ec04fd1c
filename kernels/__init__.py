"""C kernels of Heedful's operators (`export/operators.py` defines them in ONNX) for ONNX Runtime on the CPU.

ONNX Runtime calls `operators.c`; the other files compute: `rows.c`, `words.c`, `pooling.c`, `directional.c` (DiSAN),
`guided.c` (MS-SAN). pip builds them once for each generation of processors, and fails where it cannot, unless
HEEDFUL_KERNELS=0 requests an install without them.
"""

import ctypes
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

BUILDS = ("avx512", "avx2", "plain")
"""The libraries that setup.py lists, the fastest first."""


def path_of(build: str) -> Path:
    """The path of a library, which exists if it was built."""
    return Path(__file__).with_name(build + EXTENSION_SUFFIXES[0])


@cache
def library() -> Path | None:
    """The fastest library that this processor can run; None where none was built."""
    for build in BUILDS:
        path = path_of(build)
        if path.exists() and ctypes.CDLL(str(path)).runs_here():
            return path
    return None

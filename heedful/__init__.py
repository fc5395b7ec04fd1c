"""Small self-attentive sentence encoders: trained, exported to ONNX and served.

>>> import heedful
>>> model = heedful.load("ms-san-embed")
>>> model.encode(["Two kids wash their hands."]).shape
(1, 384)
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heedful.library.load import load

__all__ = ["load"]


def __getattr__(name: str) -> Any:
    """`load`, imported when it is first asked for: ONNX Runtime and spaCy take a second."""
    if name != "load":
        raise AttributeError(f"module 'heedful' has no attribute {name!r}")
    from heedful.library.load import load

    globals()["load"] = load
    return load

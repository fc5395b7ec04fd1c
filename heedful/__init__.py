"""Small self-attentive sentence encoders: trained, exported to ONNX and served.

>>> import heedful
>>> model = heedful.load("ms-san-embed")
>>> model.encode(["Two kids wash their hands."]).shape
(1, 384)
"""

import os
from typing import TYPE_CHECKING, Any

__all__ = ["bundles", "classify", "distill", "load"]

# ONNX Runtime reads it when it is first imported. Its own builds send Microsoft telemetry unless it is set, from a
# thread, which a process that forks must not have.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

if TYPE_CHECKING:
    from heedful.cli.distill_run import distill
    from heedful.library.catalogue import bundles
    from heedful.library.load import classify, load

    __version__: str
else:

    def __getattr__(name: str) -> Any:
        """What is looked up when it is first asked for: ONNX Runtime and spaCy take a second."""
        if name == "load":
            from heedful.library.load import load as found
        elif name == "classify":
            from heedful.library.load import classify as found
        elif name == "bundles":
            from heedful.library.catalogue import bundles as found
        elif name == "distill":
            from heedful.cli.distill_run import distill as found  # needs torch
        elif name == "__version__":
            from importlib.metadata import version

            found = version("heedful")
        else:
            raise AttributeError(f"module 'heedful' has no attribute {name!r}")
        globals()[name] = found
        return found

    def __dir__() -> list[str]:
        return [*__all__, "__version__"]

"""The device that models run on: what a session comes up on, tried once.

It is tried in another process. CUDA does not survive a fork, and ONNX Runtime prints a page of errors where there is
a driver but not the rest of CUDA.
"""

import ctypes
import logging
import re
import subprocess
import sys
from functools import cache
from typing import Literal

from heedful.runtime.errors import ProviderError

log = logging.getLogger(__name__)

Device = Literal["auto", "cpu", "cuda"]
"""What may be asked for: "auto" takes CUDA where it comes up."""
Resolved = Literal["cpu", "cuda"]
TRY_SECONDS = 120
_PRODUCT = (
    b'\x08\x08:@\n\x11\n\x01x\n\x01x\x12\x01y"\x06MatMul\x12\x01gZ\x13\n\x01x\x12\x0e\n\x0c\x08\x01'
    b"\x12\x08\n\x02\x08\x02\n\x02\x08\x02b\x13\n\x01y\x12\x0e\n\x0c\x08\x01\x12\x08\n\x02\x08\x02\n\x02\x08\x02B\x04\n\x00\x10\r"
)
"""An ONNX graph: y = x x, (2, 2) float32."""


@cache
def resolve(device: Device) -> Resolved:
    """The device for what was asked. Raises ProviderError where CUDA was asked for and does not come up."""
    if device == "cpu":
        return "cpu"
    reason = "there is no NVIDIA driver"
    if _has_driver():
        reason = _try_cuda()
        if not reason:
            return "cuda"
        if device == "auto":
            log.warning("models run on the CPU: CUDA does not come up (%s)", reason)
    if device == "cuda":
        raise ProviderError(
            f"device is cuda, but CUDA does not come up ({reason}): "
            "install the gpu extra and NVIDIA's driver, or set the device to auto or cpu"
        )
    return "cpu"


def _has_driver() -> bool:
    """Whether NVIDIA's driver is there. It is not called."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def _try_cuda() -> str:
    """Why no session runs on CUDA; empty where one does."""
    program = f"import sys; sys.path[:] = {sys.path!r}; from heedful.runtime.device import run_on_cuda; run_on_cuda()"
    try:
        ran = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TRY_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"it has not answered for {TRY_SECONDS} s"
    if ran.returncode == 0:
        return ""
    reasons = re.findall(
        r"with error: (.+)|^\w*(?:Error|Exception): (.+)", ran.stderr, re.MULTILINE
    )
    return next((a or b for a, b in reasons), f"the trial ended with status {ran.returncode}")


def run_on_cuda() -> None:
    """Run a graph on CUDA. Raises RuntimeError where the session comes up without."""
    import numpy as np
    import onnxruntime

    from heedful.text.graph import CUDA, open_session

    onnxruntime.preload_dlls()  # from the nvidia wheels, where they are installed
    session = open_session(_PRODUCT, cuda=True)
    if session.get_providers()[0] != CUDA:
        raise RuntimeError("the session runs on the CPU")
    session.run(None, {"x": np.ones((2, 2), np.float32)})

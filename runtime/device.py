"""The device that models run on: CUDA if a session runs on it, tried once, in another process.

CUDA does not survive a fork, and ONNX Runtime prints a page of errors where there is a driver but not the rest of CUDA.
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
"""The setting: "auto" takes CUDA where a session runs on it."""
Resolved = Literal["cpu", "cuda"]
TRY_SECONDS = 120
SHARE = 0.8
"""Share of the device's memory for the sessions of all processes; CUDA itself needs memory for each process."""
_DRIVER = "libcuda.so.1"
_PRODUCT = (
    b'\x08\x08:@\n\x11\n\x01x\n\x01x\x12\x01y"\x06MatMul\x12\x01gZ\x13\n\x01x\x12\x0e\n\x0c\x08\x01'
    b"\x12\x08\n\x02\x08\x02\n\x02\x08\x02b\x13\n\x01y\x12\x0e\n\x0c\x08\x01\x12\x08\n\x02\x08\x02\n\x02\x08\x02B\x04\n\x00\x10\r"
)
"""An ONNX graph: y = x x, (2, 2) float32."""


@cache
def resolve(device: Device) -> Resolved:
    """The device for a setting. Raises ProviderError where the setting is "cuda" and no session runs on it."""
    if device == "cpu":
        return "cpu"
    try:
        ctypes.CDLL(_DRIVER)  # which is not called
    except OSError:
        reason = "there is no NVIDIA driver"
    else:
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


def _try_cuda() -> str:
    """Why no session runs on CUDA; empty where one does."""
    program = f"import sys; sys.path[:] = {sys.path!r}; from heedful.runtime.device import run_on_cuda; run_on_cuda()"
    try:
        trial = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TRY_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"it has not answered for {TRY_SECONDS} s"
    if trial.returncode == 0:
        return ""
    reasons = re.findall(
        r"with error: (.+)|^\w*(?:Error|Exception): (.+)", trial.stderr, re.MULTILINE
    )
    return next((a or b for a, b in reasons), f"the trial ended with status {trial.returncode}")


def run_on_cuda() -> None:
    """Run a graph on CUDA. Raises RuntimeError where the session runs on the CPU."""
    import numpy as np
    import onnxruntime

    from heedful.text.graph import CUDA, open_session

    onnxruntime.preload_dlls()  # from the nvidia wheels, where they are installed
    session = open_session(_PRODUCT, cuda=True)
    if session.get_providers()[0] != CUDA:
        raise RuntimeError("the session runs on the CPU")
    session.run(None, {"x": np.ones((2, 2), np.float32)})


@cache
def limit_memory(processes: int) -> None:
    """Limit the memory of this process's sessions on CUDA to its share, where `processes` use the device.

    The sessions share an arena (`text.graph.open_session` requests it). This process may not fork afterwards. Raises
    ProviderError.
    """
    import onnxruntime

    from heedful.text.graph import CUDA

    driver, device, size = ctypes.CDLL(_DRIVER), ctypes.c_int(), ctypes.c_size_t()
    if (
        driver.cuInit(0)
        or driver.cuDeviceGet(ctypes.byref(device), 0)
        or driver.cuDeviceTotalMem_v2(ctypes.byref(size), device)
    ):
        raise ProviderError("NVIDIA's driver does not say how much memory the device has")
    arena = {"max_mem": int(SHARE * size.value / processes)}
    # ONNX Runtime's defaults: regions grow by powers of two.
    arena |= {"arena_extend_strategy": 0, "initial_chunk_size_bytes": -1}
    arena |= {"max_dead_bytes_per_chunk": -1, "initial_growth_chunk_size_bytes": -1}
    memory = onnxruntime.OrtMemoryInfo(
        "Cuda", onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, onnxruntime.OrtMemType.DEFAULT
    )
    onnxruntime.preload_dlls()  # from the nvidia wheels, where they are installed
    try:
        onnxruntime.create_and_register_allocator_v2(
            CUDA, memory, {}, onnxruntime.OrtArenaCfg(arena)
        )
    except Exception as error:  # ONNX Runtime raises nothing narrower
        raise ProviderError(f"ONNX Runtime limits no memory of the device: {error}") from error

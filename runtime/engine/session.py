"""A session: a graph on its device."""

import ctypes
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy.typing as npt
import onnxruntime

from heedful.runtime.errors import ProviderError
from heedful.text.arrays import Floats
from heedful.text.errors import GraphError
from heedful.text.graph import CUDA, open_session

log = logging.getLogger(__name__)

Device = Literal["auto", "cpu", "cuda"]


class OrtSession:
    """A graph in ONNX Runtime, on the device asked for.

    `device` "cuda" raises ProviderError where CUDA does not come up; "auto" takes CUDA where there
    is a GPU and it comes up, else the CPU. `shared` and `files` are `tensors` and `files` of
    `open_session`. Raises ProviderError too where the graph cannot be opened, for example for want
    of memory.
    """

    def __init__(
        self,
        graph: Path | bytes,
        device: Device,
        threads: int,
        shared: Mapping[str, onnxruntime.OrtValue] = {},
        files: Mapping[str, bytes] = {},
    ) -> None:
        cuda = takes_cuda(device)
        if cuda:
            onnxruntime.preload_dlls()  # from the nvidia wheels, where they are installed
            shared = {}  # there the weights are copied to the GPU
        self._shared = shared  # the session only borrows them
        try:
            self.graph = open_session(
                graph, threads=threads, cuda=cuda, files=files, tensors=shared
            )
        except GraphError as error:
            raise ProviderError(
                f"ONNX Runtime cannot open a graph on device {device}: {error}"
            ) from error
        # What was asked for proves nothing: a CUDA that does not come up leaves the CPU, silently.
        self.provider: str = self.graph.get_providers()[0]
        if device == "cuda" and self.provider != CUDA:
            raise ProviderError(
                f"device is cuda, but ONNX Runtime runs on {self.provider}: CUDA did not come up. "
                "Install the gpu extra and NVIDIA's driver, or set the device to auto or cpu"
            )
        if cuda and self.provider != CUDA:
            log.warning("there is a GPU, but CUDA did not come up: a model runs on the CPU")

    def run(self, feeds: Mapping[str, npt.NDArray[Any]]) -> Floats:
        output: Floats
        (output,) = self.graph.run(None, feeds)
        return output


def split_threads(device: Device, threads: int) -> tuple[int, int]:
    """Split `threads` into parallel batches and threads per batch.

    On two processors, two parallel batches do twice the work of one batch, which is too small to be
    split well. A GPU runs one large batch at a time.
    """
    return (1, threads) if takes_cuda(device) else (threads, 1)


def takes_cuda(device: Device) -> bool:
    """Whether to try CUDA: "auto" does if there is a GPU."""
    return device == "cuda" or (device == "auto" and gpus() > 0)


def gpus() -> int:
    """Number of GPUs, from NVIDIA's driver: ONNX Runtime lists CUDA even without one."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int(0)
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return 0
    return count.value

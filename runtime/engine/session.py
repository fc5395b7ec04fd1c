"""Sessions: a graph on its device, and the threads that run it."""

import asyncio
import ctypes
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

import numpy.typing as npt
import onnxruntime

from heedful.runtime.errors import InferenceFailed, ProviderError, Unavailable
from heedful.text.arrays import Floats
from heedful.text.errors import GraphError
from heedful.text.graph import CUDA, open_session

log = logging.getLogger(__name__)

Device = Literal["auto", "cpu", "cuda"]
STUCK_SECONDS = 120.0


Output = TypeVar("Output", covariant=True)
T = TypeVar("T")


class Session(Protocol[Output]):
    provider: str
    """The execution provider in use."""

    def run(self, feeds: Mapping[str, npt.NDArray[Any]]) -> Output:
        """Run the graph."""


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


class SessionThreads:
    """Threads that run sessions, one batch each at a time.

    The event loop stays free, because ONNX Runtime releases the interpreter's lock.
    """

    def __init__(self, size: int = 1, niceness: int = 0) -> None:
        """`niceness` makes the threads yield to others where processors are short."""
        self.size = size
        self._executor = ThreadPoolExecutor(size, "session", partial(_be_nice, niceness))
        self._stopped = False
        self._since: dict[int, float] = {}  # start of each thread's current run

    @property
    def stuck(self) -> bool:
        """Whether a run has taken longer than any batch can."""
        now = time.monotonic()
        return any(now - since > STUCK_SECONDS for since in list(self._since.values()))

    async def run(
        self, session: Session[T], feeds: Mapping[str, npt.NDArray[Any]]
    ) -> tuple[T, float]:
        """The session's output and the seconds it took. Raises InferenceFailed, Unavailable."""
        return await self.call(self.timed, session, feeds)

    async def run_all(
        self, runs: Iterable[tuple[Session[T], Mapping[str, npt.NDArray[Any]]]]
    ) -> list[tuple[T, float]]:
        """`run` of each session with its feeds, side by side, as many at once as there are threads."""
        return await asyncio.gather(*(self.run(session, feeds) for session, feeds in runs))

    async def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call the function in a thread. Raises Unavailable, and whatever it raises."""
        if self._stopped:
            raise Unavailable("the service is shutting down")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, function, *arguments)

    def timed(self, session: Session[T], feeds: Mapping[str, npt.NDArray[Any]]) -> tuple[T, float]:
        """Like `run`, for callers that are in a thread already."""
        thread = threading.get_ident()
        self._since[thread] = started = time.monotonic()
        try:
            return session.run(feeds), time.monotonic() - started
        except Exception as error:  # whatever a session raises, its callers need an answer
            log.exception("a model failed on %s", {name: a.shape for name, a in feeds.items()})
            raise InferenceFailed("the model failed on this input") from error
        finally:
            del self._since[thread]

    async def stop(self) -> None:
        """Refuse new runs, wait for the current ones unless stuck, and end the threads."""
        self._stopped = True
        await asyncio.to_thread(self._executor.shutdown, wait=not self.stuck)


def _be_nice(niceness: int) -> None:
    """Let this thread yield to others where processors are short."""
    if niceness:  # Linux has one per thread
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), niceness)


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

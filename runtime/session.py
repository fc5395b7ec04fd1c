"""A session runs one graph. ONNX Runtime is behind it; a test may put something else there."""

import asyncio
import ctypes
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import onnxruntime

from heedful.runtime.errors import InferenceFailed, ProviderError, Unavailable

log = logging.getLogger(__name__)

Device = Literal["auto", "cpu", "cuda"]
STUCK_SECONDS = 120.0
CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"


Output = TypeVar("Output", covariant=True)
T = TypeVar("T")


class Session(Protocol[Output]):
    provider: str
    """The execution provider in use."""

    def run(self, feeds: Mapping[str, npt.NDArray[Any]]) -> Output:
        """What the graph gives."""


class OrtSession:
    """A graph in ONNX Runtime, from its file or its bytes.

    `device` "cuda" raises ProviderError where CUDA does not come up; "auto" takes CUDA where there
    is a GPU and it comes up, else the CPU. `threads` is the number that one operator may use.
    `shared` are tensors by name to use on the CPU in the place of copies of the graph's own, and
    `files` what the graph may name as places of its tensors.
    Raises ProviderError too where the graph cannot be opened there, for want of memory say.
    """

    def __init__(
        self,
        graph: Path | bytes,
        device: Device,
        threads: int,
        shared: Mapping[str, onnxruntime.OrtValue] = {},
        files: Mapping[str, bytes] = {},
    ) -> None:
        wants_cuda = takes_cuda(device)
        if wants_cuda:
            onnxruntime.preload_dlls()  # from the nvidia wheels, where they are installed
        options = session_options(threads)
        lend(options, files)
        if not wants_cuda:  # there the weights are copied to the GPU
            for name, tensor in shared.items():
                options.add_initializer(name, tensor)
        self._shared = shared  # the session only borrows them
        try:
            self._session = onnxruntime.InferenceSession(
                graph, options, providers=_providers(wants_cuda)
            )
        except Exception as error:  # ONNX Runtime's errors have no narrower common class
            log.exception("ONNX Runtime cannot open a graph")
            raise ProviderError(f"ONNX Runtime cannot open a graph on device {device}") from error
        # What was asked for proves nothing: a CUDA that does not come up leaves the CPU, silently.
        self.provider: str = self._session.get_providers()[0]
        if device == "cuda" and self.provider != CUDA:
            raise ProviderError(
                f"device is cuda, but ONNX Runtime runs on {self.provider}: CUDA did not come up. "
                "Install the gpu extra and NVIDIA's driver, or set the device to auto or cpu"
            )
        if wants_cuda and self.provider != CUDA:
            log.warning("there is a GPU, but CUDA did not come up: a model runs on the CPU")

    def run(self, feeds: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[np.float32]:
        output: npt.NDArray[np.float32]
        (output,) = self._session.run(None, feeds)
        return output


class SessionThreads:
    """Threads in which sessions run, one batch in each at a time.

    The event loop stays free meanwhile: ONNX Runtime lets the interpreter's lock go.
    """

    def __init__(self, size: int = 1, niceness: int = 0) -> None:
        """`niceness` lets the threads wait for others where processors are short."""
        self.size = size
        self._executor = ThreadPoolExecutor(size, "session", lambda: _be_nice(niceness))
        self._stopped = False
        self._since: dict[int, float] = {}  # by thread, when the run in progress began

    @property
    def stuck(self) -> bool:
        """Whether a run takes longer than any batch can."""
        now = time.monotonic()
        return any(now - since > STUCK_SECONDS for since in list(self._since.values()))

    async def run(
        self, session: Session[T], feeds: Mapping[str, npt.NDArray[Any]]
    ) -> tuple[T, float]:
        """The session's output and the seconds it took. Raises InferenceFailed, Unavailable."""
        return await self.call(self.timed, session, feeds)

    async def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """What the function gives, called in a thread. Raises Unavailable, and what it raises."""
        if self._stopped:
            raise Unavailable("the service is shutting down")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, function, *arguments)

    def timed(self, session: Session[T], feeds: Mapping[str, npt.NDArray[Any]]) -> tuple[T, float]:
        """As `run`, for what runs in a thread already."""
        thread = threading.get_ident()
        self._since[thread] = started = time.monotonic()
        try:
            return session.run(feeds), time.monotonic() - started
        except Exception as error:  # ONNX Runtime's errors have no narrower common class
            log.exception("a model failed on %s", {name: a.shape for name, a in feeds.items()})
            raise InferenceFailed("the model failed on this input") from error
        finally:
            del self._since[thread]

    async def stop(self) -> None:
        """Take no more, wait for what was taken unless it is stuck, and end the threads."""
        self._stopped = True
        await asyncio.to_thread(self._executor.shutdown, wait=not self.stuck)


def _be_nice(niceness: int) -> None:
    if niceness:  # on Linux it is each thread's own
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), niceness)


def division(device: Device, threads: int) -> tuple[int, int]:
    """`threads` of processors -> batches that run at a time, and the threads of each.

    Batches side by side do twice the work of one batch on two processors, which is too small to be
    divided well. A GPU takes one batch at a time, and large ones.
    """
    return (1, threads) if takes_cuda(device) else (threads, 1)


def session_options(threads: int) -> onnxruntime.SessionOptions:
    """What every session that serves is opened with; `threads` is what one operator may use."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # A memory pattern is kept for every shape met, and the arena keeps the most it ever held.
    options.enable_mem_pattern = False
    options.enable_cpu_mem_arena = False
    options.log_severity_level = 4  # what fails is raised, and logged once in our own shape
    return options


def lend(options: onnxruntime.SessionOptions, files: Mapping[str, bytes]) -> None:
    """Let a graph find the tensors that it says are in other files in what was read of these."""
    options.add_external_initializers_from_files_in_memory(
        list(files), list(files.values()), [len(content) for content in files.values()]
    )


def takes_cuda(device: Device) -> bool:
    """Whether CUDA is asked for: "auto" does where there is a GPU."""
    return device == "cuda" or (device == "auto" and gpus() > 0)


def gpus() -> int:
    """GPUs that NVIDIA's driver sees. Asked of the driver: ONNX Runtime lists CUDA without one."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int(0)
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return 0
    return count.value


def _providers(cuda: bool) -> list[Any]:
    if not cuda:
        return [CPU]
    # TF32 keeps ten bits of each factor: a vector would change in its third digit.
    return [(CUDA, {"use_tf32": "0", "arena_extend_strategy": "kSameAsRequested"}), CPU]

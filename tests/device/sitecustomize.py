"""A CUDA device that is the CPU: in a process started with this folder on its path, sessions on CUDA come up there.

They use the arena that the process has asked for on the device, so ONNX Runtime has no more memory for them. It stands
beside `benchmarks.driver`'s library; both note the processes that call CUDA in $CUDA_CALLS.
"""

import os
from pathlib import Path
from typing import Any

import onnxruntime

CUDA = "CUDAExecutionProvider"
_register = onnxruntime.create_and_register_allocator_v2


def note() -> None:
    with Path(os.environ["CUDA_CALLS"]).open("a") as calls:
        calls.write(f"{os.getpid()}\n")


class Session(onnxruntime.InferenceSession):  # type: ignore[misc]
    def __init__(self, graph: Any, options: Any, *, providers: list[Any], **more: Any) -> None:
        self._on_device = providers[0][0] == CUDA
        if self._on_device:
            note()
            # Prepacked weights are taken past an arena's limit, which then no longer holds. CUDA packs none.
            options.add_session_config_entry("session.disable_prepacking", "1")
        super().__init__(graph, options, providers=["CPUExecutionProvider"], **more)

    def get_providers(self) -> list[str]:
        own: list[str] = super().get_providers()
        return [CUDA, *own] if self._on_device else own

    def run(self, *arguments: Any) -> Any:
        if self._on_device:
            note()
        return super().run(*arguments)


def register(provider: str, place: Any, options: Any, arena: Any) -> None:
    assert provider == CUDA
    note()
    kind, memory = onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, onnxruntime.OrtMemType.DEFAULT
    _register(
        "CPUExecutionProvider", onnxruntime.OrtMemoryInfo("Cpu", kind, 0, memory), options, arena
    )


onnxruntime.InferenceSession = Session
onnxruntime.create_and_register_allocator_v2 = register
onnxruntime.preload_dlls = note

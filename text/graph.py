"""ONNX Runtime sessions of a model's or the parser's graph."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import onnxruntime

from heedful.kernels import library
from heedful.text.errors import GraphError

SLOW_FUSIONS = ["SkipLayerNormFusion"]
"""Fusions that are switched off: on a CPU a sum and a LayerNormalization take a fifth of the fused operator's time."""
CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"
RUN_SECONDS = 60.0
"""Limit of a run that checks a graph: it takes milliseconds, but a graph may hold an endless loop."""


@contextmanager
def ort_errors() -> Iterator[None]:
    """Raise ONNX Runtime's errors, which have no narrower base, as GraphError, with the message on one line."""
    try:
        yield
    except Exception as error:
        raise GraphError(" ".join(str(error).split())) from error


@contextmanager
def bounded_run() -> Iterator[onnxruntime.RunOptions]:
    """Options of a run that is ended after RUN_SECONDS. Raises GraphError."""
    options = onnxruntime.RunOptions()
    limit = threading.Timer(RUN_SECONDS, partial(setattr, options, "terminate", True))
    limit.start()
    try:
        with ort_errors():
            yield options
    finally:
        limit.cancel()


def open_session(
    graph: Path | bytes,
    *,
    threads: int = 1,
    cuda: bool = False,
    optimize: bool = True,
    files: Mapping[str, bytes] = {},
    tensors: Mapping[str, onnxruntime.OrtValue] = {},
    kernels: bool = True,
) -> onnxruntime.InferenceSession:
    """Open a graph in ONNX Runtime. Raises GraphError.

    `threads` is the number that an operator may use. `files` has the contents of the files in which the graph stores
    tensors, by name. `tensors` replace initializers of the graph by name; the session borrows them, so the caller has
    to keep them. With `cuda` the CPU is the fallback. Without `kernels`, and on CUDA, Heedful's operators run as the
    graph defines them.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # ONNX Runtime keeps a memory pattern for each shape, and the arena never shrinks.
    options.enable_mem_pattern = False
    options.enable_cpu_mem_arena = False
    options.log_severity_level = 4  # the exception holds the same message
    if not optimize:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_external_initializers_from_files_in_memory(
        list(files), list(files.values()), [len(content) for content in files.values()]
    )
    for name, tensor in tensors.items():
        options.add_initializer(name, tensor)
    if kernels and not cuda and (path := library()):
        options.register_custom_ops_library(str(path))
    providers: list[Any] = [CPU]
    if cuda:
        # TF32 keeps ten bits of each factor: a vector would change in its third digit.
        settings = {"use_tf32": "0", "arena_extend_strategy": "kSameAsRequested"}
        providers.insert(0, (CUDA, settings))
        # The process's arena, if `runtime.device.limit_memory` has created one.
        options.add_session_config_entry("session.use_env_allocators", "1")
    with ort_errors():
        return onnxruntime.InferenceSession(
            graph,
            options,
            providers=providers,
            disabled_optimizers=[] if cuda else SLOW_FUSIONS,
            enable_fallback=0,  # else the package continues without CUDA after an error
        )

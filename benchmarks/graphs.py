"""Encoder graphs in this process, on sentences of one length: random words in a chain for a tree."""

import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx

from runtime.bundle import ENCODER, Bundle
from runtime.graphs import encoder_feeds
from runtime.session import OrtSession
from text.batch import Sentence, collate

QUANTIZED = {
    "QuantizeLinear",
    "DynamicQuantizeLinear",
    "MatMulNBits",
    "MatMulInteger",
    "QLinearMatMul",
}
"""Operators of a graph that computes in 8 bits: weights that are only stored so need none of them."""


def runner(bundle: Bundle, threads: int) -> Callable[[int, int], Callable[[], object]]:
    """(batch, length) -> a call that runs the encoder on that many sentences of that length."""
    session = OrtSession(bundle.files[ENCODER], "cpu", threads)
    random = np.random.default_rng(1)

    def case(batch: int, length: int) -> Callable[[], object]:
        heads = np.maximum(np.arange(length) - 1, 0)
        rows = random.integers(2, len(bundle.vocab), (batch, length))
        feeds = encoder_feeds(bundle.card, collate([Sentence(row, heads) for row in rows]))
        return lambda: session.run(feeds)

    return case


def seconds(
    cases: Sequence[Callable[[], object]],
    rounds: int,
    lasting: float,
    clock: Callable[[], float] = time.perf_counter,
) -> list[float]:
    """Of one call of each case: the median of rounds in which they take turns, for `lasting` each.

    With `time.process_time` for a clock, what runs on one thread is charged for itself alone.
    """
    found: list[list[float]] = [[] for _ in cases]
    for case in cases:
        case()
    for _ in range(rounds):
        for case, times in zip(cases, found, strict=True):
            calls, started = 0, clock()
            while (passed := clock() - started) < lasting or not calls:
                case()
                calls += 1
            times.append(passed / calls)
    return [statistics.median(times) for times in found]


def precision(graph: bytes | Path) -> str:
    """What the products are computed in: int8 or fp32."""
    model = onnx.load(graph) if isinstance(graph, Path) else onnx.load_from_string(graph)
    return "int8" if QUANTIZED & {node.op_type for node in model.graph.node} else "fp32"

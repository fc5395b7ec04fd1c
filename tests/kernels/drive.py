"""Call each operator of a library of kernels with arrays of many shapes and hostile values, for the sanitizers.

`python -m tests.kernels.drive LIBRARY FOLDER`: the folder holds `<operator>.onnx`, graphs of one call each.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime

Inputs = dict[str, npt.NDArray[Any]]

LENGTHS = (0, 1, 2, 3, 15, 16, 17, 33, 65)
WIDTHS = (0, 1, 2, 3, 6, 7, 8, 9, 15, 16, 17, 24, 31, 33, 66)
SPECIAL = np.array(
    [0, -0.0, np.nan, np.inf, -np.inf, 1e-45, -1e-39, 3.4e38, -3.4e38, 88, -88], np.float32
)


def inputs(rng: np.random.Generator, B: int, L: int, D: int) -> Iterator[tuple[str, Inputs]]:
    """Each operator with inputs for B sentences of L tokens and D features. Shapes and indices may be wrong."""

    def floats(*shape: int) -> npt.NDArray[np.float32]:
        values = (rng.normal(size=shape) * 10 ** rng.uniform(-3, 3)).astype(np.float32)
        hostile = rng.random(shape) < rng.choice([0, 0.1])
        return np.where(hostile, rng.choice(SPECIAL, shape), values)

    def bools(*shape: int) -> npt.NDArray[np.bool_]:
        return rng.random(shape) < 0.3

    x, y = floats(B, L, D), floats(B, L, D)
    yield "RoundRows", {"x": x}
    for name in ("Rescale", "RescaleRelu", "RescaleElu"):
        yield name, {"x": x, "scales": floats(B, L, 1), "bias": floats(D)}
    yield "Blend", {"share": floats(B, L, D), "a": x, "b": y}
    yield "TokenSoftmax", {"scores": x, "hidden": bools(B, L, 1)}
    yield "TokenMaximum", {"values": x, "hidden": bools(B, L, 1)}
    yield "WeightedSum", {"weights": x, "values": y}
    yield "MixValues", {"weights": floats(B, 2, 3, L, L), "values": x}
    yield (
        "DirectionalAttention",
        {
            "queries": floats(L, B, 1, D),
            "allowed": bools(L, B, 1, L).astype(np.float32),
            "keys": x,
            "values": y,
            "c": np.array(5, np.float32),
        },
    )
    yield (
        "GuidedWeights",
        {
            "queries": x,
            "keys": y,
            "penalty": floats(rng.choice([1, B]), 1, 3, L, L),
            "hidden": bools(rng.choice([1, B]), 2, 1, L, L),
            "divisor": floats(),
        },
    )
    words, blocks = 5, int(rng.choice([1, 2, 3]))
    yield (
        "WordVectors",
        {
            "rows": rng.integers(0, 256, (words, D), np.uint8),
            "steps": rng.integers(0, 1 << 16, (words, blocks), np.uint16).view(np.float16),
            "least": rng.integers(0, 1 << 16, (words, blocks), np.uint16).view(np.float16),
            "ids": rng.integers(0, words + rng.choice([0, 1]), (B, L)),
        },
    )
    heads = np.minimum(np.arange(L), rng.integers(0, max(L, 1), (B, L)))  # a forest
    wrong = rng.choice([-1, L, 1 << 40, -(1 << 62)], (B, L))
    yield "TreeDistance", {"heads": np.where(rng.random((B, L)) < 0.1 / (L + 1), wrong, heads)}


def misfits(rng: np.random.Generator, call: Inputs) -> Iterator[Inputs]:
    """The same call with one input of another shape: cut, with an axis of 1, or of another rank."""
    for name, value in call.items():
        for wrong in (value[..., None], value[None], value[:0] if value.ndim else value[None]):
            yield {**call, name: np.ascontiguousarray(wrong)}
        if value.ndim:
            axis = int(rng.integers(value.ndim))
            yield {**call, name: np.repeat(value, 2, axis)}


def main(library: str, folder: Path) -> None:
    options = onnxruntime.SessionOptions()
    options.register_custom_ops_library(library)
    options.enable_cpu_mem_arena = False  # so that an output lies between the sanitizer's red zones
    options.log_severity_level = 4
    sessions = {
        path.stem: onnxruntime.InferenceSession(path, options)
        for path in sorted(folder.glob("*.onnx"))
    }
    rng, answers, refusals = np.random.default_rng(0), 0, 0
    for L in LENGTHS:
        for D in WIDTHS:
            for name, call in inputs(rng, int(rng.choice([1, 2, 3])), L, D):
                for arrays in (call, *(misfits(rng, call) if D == L else ())):
                    try:
                        sessions[name].run(None, arrays)
                        answers += 1
                    except Exception as error:  # ONNX Runtime's errors share no other base
                        if "heedful" not in str(error) and "Invalid rank" not in str(error):
                            raise
                        refusals += 1
    print(f"{len(sessions)} operators, {answers} answers, {refusals} refusals")  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))

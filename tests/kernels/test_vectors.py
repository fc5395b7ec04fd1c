"""The kernels that Python calls: JSON in orjson's bytes, and rows of length 1, whatever the processor."""

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pytest

from heedful.kernels import BUILDS, path_of
from heedful.kernels.vectors import VectorKernels, of_build

Floats = npt.NDArray[np.float32]


@pytest.fixture(params=BUILDS)
def kernels(request: pytest.FixtureRequest) -> VectorKernels:
    built: Path = path_of(request.param)
    if not built.exists() or not ctypes.CDLL(str(built)).runs_here():
        pytest.skip(f"{request.param} is not built, or this processor does not run it")
    found = of_build(request.param)
    assert found, "the kernels that Python calls were not built: are its headers there?"
    return found


def expected(rows: Floats) -> bytes:
    return orjson.dumps(rows, option=orjson.OPT_SERIALIZE_NUMPY)


def test_random_bits(kernels: VectorKernels) -> None:
    bits = np.random.default_rng(1).integers(0, 2**32, (100, 3000), np.uint32)
    numbers = bits.view(np.float32)
    assert kernels.json_rows(numbers) == expected(numbers)


def test_every_exponent_and_its_neighbours(kernels: VectorKernels) -> None:
    exponents = np.arange(256, dtype=np.uint32)[:, None] << 23
    fractions = np.array([0, 1, 2, 3, 0x3FFFFF, 0x400000, 0x7FFFFE, 0x7FFFFF], np.uint32)
    sign = np.uint32(1 << 31)
    bits = np.concatenate([exponents | fractions, exponents | fractions | sign])
    assert kernels.json_rows(bits.view(np.float32)) == expected(bits.view(np.float32))


def test_round_numbers_and_their_neighbours(kernels: VectorKernels) -> None:
    powers = np.float32(10) ** np.arange(-44, 39, dtype=np.float32)
    round_ones = np.outer(np.arange(1, 120, dtype=np.float32), powers[:-2]).astype(np.float32)
    for numbers in (round_ones, np.nextafter(round_ones, 0), np.nextafter(round_ones, np.inf)):
        assert kernels.json_rows(numbers) == expected(numbers)


@pytest.mark.parametrize("shape", [(0, 5), (1, 1), (3, 0), (2, 63), (2, 64), (3, 65), (1, 600)])
def test_any_shape(kernels: VectorKernels, shape: tuple[int, int]) -> None:
    numbers = np.random.default_rng(2).normal(size=shape).astype(np.float32)
    assert kernels.json_rows(numbers) == expected(numbers)


def test_a_shorter_array_after_a_longer_one(kernels: VectorKernels) -> None:
    long, short = np.full((9, 90), -1.2345678e-30, np.float32), np.ones((1, 2), np.float32)
    assert (kernels.json_rows(long), kernels.json_rows(short)) == (expected(long), b"[[1.0,1.0]]")


def test_rows_that_are_cut(kernels: VectorKernels) -> None:
    numbers = np.random.default_rng(3).normal(size=(4, 10)).astype(np.float32)
    assert kernels.json_rows(numbers[:, :3]) == expected(numbers[:, :3].copy())


def scaled(kernels: VectorKernels, rows: Floats) -> Floats:
    found = np.full(rows.shape, np.nan, np.float32)
    kernels.unit_rows_into(rows, found)
    return found


@pytest.mark.parametrize("size", [1e-45, 1e-20, 1.0, 1e38])
@pytest.mark.parametrize("shape", [(0, 5), (1, 1), (3, 0), (2, 15), (2, 16), (3, 17), (5, 600)])
def test_rows_of_length_one(kernels: VectorKernels, shape: tuple[int, int], size: float) -> None:
    rows = (np.random.default_rng(4).uniform(0.1, 2, shape) * size).astype(np.float32)
    exact = rows / np.linalg.norm(rows.astype(np.longdouble), axis=1, keepdims=True)
    np.testing.assert_array_almost_equal_nulp(scaled(kernels, rows), exact.astype(np.float32))


def test_a_row_of_zeros_stays(kernels: VectorKernels) -> None:
    assert scaled(kernels, np.array([[0, -0.0], [3, 4]], np.float32)).tolist() == [
        [0, 0],
        [np.float32(0.6), np.float32(0.8)],
    ]


def test_rows_that_lie_apart_are_scaled(kernels: VectorKernels) -> None:
    rows = np.random.default_rng(5).normal(size=(6, 40)).astype(np.float32)
    found = np.zeros((3, 50), np.float32)
    kernels.unit_rows_into(rows[::-2, 3:33], found[:, 10:40])
    assert np.array_equal(found[:, 10:40], scaled(kernels, rows[::-2, 3:33].copy()))
    assert not found[:, :10].any()
    assert not found[:, 40:].any()


@pytest.mark.parametrize(
    "rows",
    [
        np.ones((2, 3)),
        np.ones(3, np.float32),
        np.ones((2, 3), np.float32).T,
        np.ones((2, 3), np.int32),
        np.ones((2, 3), ">f4"),
        [[1.0, 2.0, 3.0]],
    ],
)
def test_other_arrays_are_refused(kernels: VectorKernels, rows: Any) -> None:
    with pytest.raises(TypeError):
        kernels.json_rows(rows)
    with pytest.raises(TypeError):
        kernels.unit_rows_into(rows, np.empty((2, 3), np.float32))
    with pytest.raises((TypeError, BufferError)):
        kernels.unit_rows_into(np.ones((2, 3), np.float32), rows)


def test_arrays_of_two_shapes_are_refused(kernels: VectorKernels) -> None:
    with pytest.raises(ValueError, match="differ in shape"):
        kernels.unit_rows_into(np.ones((2, 3), np.float32), np.empty((2, 4), np.float32))


def test_a_read_only_array_is_not_written(kernels: VectorKernels) -> None:
    locked = np.empty((2, 3), np.float32)
    locked.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        kernels.unit_rows_into(np.ones((2, 3), np.float32), locked)

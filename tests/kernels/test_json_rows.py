"""The JSON of float32 arrays has the bytes that orjson writes, whatever the number and the processor."""

import ctypes
from pathlib import Path

import numpy as np
import numpy.typing as npt
import orjson
import pytest

from heedful.kernels import BUILDS, path_of
from heedful.kernels.json_rows import JSONRows

Floats = npt.NDArray[np.float32]


@pytest.fixture(params=BUILDS)
def write(request: pytest.FixtureRequest) -> JSONRows:
    built: Path = path_of(request.param)
    if not built.exists() or not ctypes.CDLL(str(built)).runs_here():
        pytest.skip(f"{request.param} is not built, or this processor does not run it")
    return JSONRows(built)


def expected(rows: Floats) -> bytes:
    return orjson.dumps(rows, option=orjson.OPT_SERIALIZE_NUMPY)


def test_random_bits(write: JSONRows) -> None:
    bits = np.random.default_rng(1).integers(0, 2**32, (100, 3000), np.uint32)
    numbers = bits.view(np.float32)
    assert write(numbers) == expected(numbers)


def test_every_exponent_and_its_neighbours(write: JSONRows) -> None:
    exponents = np.arange(256, dtype=np.uint32)[:, None] << 23
    fractions = np.array([0, 1, 2, 3, 0x3FFFFF, 0x400000, 0x7FFFFE, 0x7FFFFF], np.uint32)
    sign = np.uint32(1 << 31)
    bits = np.concatenate([exponents | fractions, exponents | fractions | sign])
    assert write(bits.view(np.float32)) == expected(bits.view(np.float32))


def test_round_numbers_and_their_neighbours(write: JSONRows) -> None:
    powers = np.float32(10) ** np.arange(-44, 39, dtype=np.float32)
    round_ones = np.outer(np.arange(1, 120, dtype=np.float32), powers[:-2]).astype(np.float32)
    for numbers in (round_ones, np.nextafter(round_ones, 0), np.nextafter(round_ones, np.inf)):
        assert write(numbers) == expected(numbers)


@pytest.mark.parametrize("shape", [(0, 5), (1, 1), (3, 0), (2, 63), (2, 64), (3, 65), (1, 600)])
def test_any_shape(write: JSONRows, shape: tuple[int, int]) -> None:
    numbers = np.random.default_rng(2).normal(size=shape).astype(np.float32)
    assert write(numbers) == expected(numbers)


def test_what_stood_in_the_buffer_before_is_gone(write: JSONRows) -> None:
    long, short = np.full((9, 90), -1.2345678e-30, np.float32), np.ones((1, 2), np.float32)
    assert (write(long), write(short)) == (expected(long), b"[[1.0,1.0]]")


def test_rows_that_are_cut(write: JSONRows) -> None:
    numbers = np.random.default_rng(3).normal(size=(4, 10)).astype(np.float32)
    assert write(numbers[:, :3]) == expected(numbers[:, :3].copy())

import subprocess
import sys

import numpy as np
import pytest

from heedful.text.products import product

IDLE = """
import os, time
import numpy as np
from heedful.text.products import product
rows, matrix = np.ones((512, 600), np.float32), np.ones((600, 32), np.float32)
product(rows, matrix)
time.sleep(0.3)
before = time.process_time() - time.thread_time()
for _ in range(20):
    product(rows, matrix)
print(time.process_time() - time.thread_time() - before)
"""
"""Prints the processor time of all other threads."""


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 65])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_it_is_the_product(count: int, kind: type[np.floating]) -> None:
    random = np.random.default_rng(1)
    rows = random.standard_normal((count, 12)).astype(kind)
    matrix = random.standard_normal((12, 5)).astype(kind)
    made = product(rows, matrix)
    assert made.dtype == kind
    np.testing.assert_allclose(made, rows @ matrix, rtol=1e-4, atol=1e-6)


def test_no_other_thread_works() -> None:
    done = subprocess.run([sys.executable, "-c", IDLE], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 1e-3

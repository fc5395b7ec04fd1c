import os
import subprocess
import sys

import numpy as np
import pytest

from heedful.text.products import product

IDLE = """
import sys, time
import numpy as np
from heedful.text.products import product
D, E, kind = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
rows, matrix = np.ones((512, D), kind), np.ones((D, E), kind)
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


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize(("width", "columns"), [(600, 32), (384, 256), (256, 64), (600, 256)])
def test_no_other_thread_works(width: int, columns: int, kind: str) -> None:
    """The shapes of untypical texts and of words outside the list, the arc parser's, and a larger one."""
    command = [sys.executable, "-c", IDLE, str(width), str(columns), kind]
    env = {name: value for name, value in os.environ.items() if "NUM_THREADS" not in name}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    assert float(done.stdout) < 1e-3

import os
import subprocess
import sys

import numpy as np
import pytest

from heedful.text.hashed_words import product

IDLE = """
import time
import numpy as np
from heedful.text.hashed_words import product
rows, matrix = np.ones((512, 384)), np.ones((384, 256))
product(rows, matrix)
time.sleep(0.3)
before = time.process_time() - time.thread_time()
for _ in range(20):
    product(rows, matrix)
print(time.process_time() - time.thread_time() - before)
"""
"""Prints the processor time of all other threads."""


@pytest.mark.parametrize("count", [0, 1, 65])
def test_it_is_the_product(count: int) -> None:
    random = np.random.default_rng(1)
    rows = random.standard_normal((count, 900))
    matrix = random.standard_normal((900, 50))
    np.testing.assert_allclose(product(rows, matrix), np.einsum("nd,de->ne", rows, matrix))


def test_no_other_thread_works() -> None:
    env = {name: value for name, value in os.environ.items() if "NUM_THREADS" not in name}
    command = [sys.executable, "-c", IDLE]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    assert float(done.stdout) < 1e-3

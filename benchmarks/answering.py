"""The worker's side of benchmarks.workers, for any environment: reads lists of texts, writes seconds."""

import json
import sys
import time
from collections.abc import Callable
from typing import TextIO


def answer(compute: Callable[[list[str]], object], output: TextIO = sys.stdout) -> None:
    """Compute each line's list of texts, and write how many seconds that took, until the input ends."""
    for line in sys.stdin:
        texts = json.loads(line)
        started = time.perf_counter()
        compute(texts)
        output.write(f"{time.perf_counter() - started}\n")
        output.flush()

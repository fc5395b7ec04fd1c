"""The other end of benchmarks.workers, for any environment: lists of texts come in, seconds go out."""

import json
import sys
import time
from collections.abc import Callable
from typing import TextIO


def answer(compute: Callable[[list[str]], object], to: TextIO = sys.stdout) -> None:
    """Compute each line's list of texts, and tell how long that took, until no more lines come."""
    for line in sys.stdin:
        texts = json.loads(line)
        started = time.perf_counter()
        compute(texts)
        to.write(f"{time.perf_counter() - started}\n")
        to.flush()

"""A model in this process, as in a notebook: `heedful.load(..).encode`. Speaks the protocol of benchmarks.workers.

python -m benchmarks.in_process BUNDLES MODEL
"""

import json
import sys
import time
from pathlib import Path

import heedful

BATCH = 64


def run(bundles: Path, model: str) -> None:
    with heedful.load(model, models=bundles) as loaded:
        for line in sys.stdin:
            texts = json.loads(line)
            started = time.perf_counter()
            loaded.encode(texts, batch_size=BATCH)
            sys.stdout.write(f"{time.perf_counter() - started}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    run(Path(sys.argv[1]), sys.argv[2])

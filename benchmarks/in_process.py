"""A model in this process, as in a notebook: `heedful.load(..).encode`.

python -m benchmarks.in_process BUNDLES MODEL
"""

import sys
from functools import partial
from pathlib import Path

import heedful
from benchmarks.answering import answer

BATCH = 64


def run(bundles: Path, model: str) -> None:
    with heedful.load(model, models=bundles) as loaded:
        answer(partial(loaded.encode, batch_size=BATCH))


if __name__ == "__main__":
    run(Path(sys.argv[1]), sys.argv[2])

"""SetFit's and model2vec's own training on the samples of `benchmarks.fit`, in an environment of theirs.

    python -m benchmarks.fit_peers --tasks trec cr sst2 --sizes 8 --draws 3

Each call adds to results/fit/peers.json; `python -m benchmarks.fit --page` writes the table of docs/notes/fit.md.
"""

import argparse
import json
import subprocess
from pathlib import Path
from typing import Any

from benchmarks import environments
from benchmarks.fit_data import SIZES, TASKS, Texts, draw, read
from heedful.files.atomic import write_json
from heedful.training import teachers
from heedful.training.data_folder import data_folder
from heedful.training.source_commit import source_commit

METHODS = ("setfit", "model2vec")
PROGRAM = Path(__file__).with_name("peers") / "few_shot.py"
RESULT = Path("results/fit/peers.json")
ENVIRONMENT = "few_shot"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", nargs="+", default=["trec", "cr", "sst2"], choices=TASKS)
    parser.add_argument("--sizes", nargs="+", default=["8", "16"], choices=SIZES)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    options = parser.parse_args()
    for name in options.tasks:
        pool, test = read(name, data_folder())
        for size in options.sizes:
            for number in range(options.draws):
                for method in options.methods:
                    figures = measure(method, draw(pool, size, number), test)
                    add({"task": name, "size": size, "draw": number, "method": method, **figures})


def measure(method: str, sample: Texts, test: Texts) -> dict[str, Any]:
    """The accuracy on the test rows, and the processor seconds."""
    request = {
        "method": method,
        "minilm": str(teachers.folder(teachers.MINILM)),
        "texts": sample.texts,
        "labels": sample.labels,
        "test": test.texts,
    }
    command = [environments.python(ENVIRONMENT), PROGRAM]
    done = subprocess.run(
        command, input=json.dumps(request), stdout=subprocess.PIPE, text=True, check=True
    )
    answer = json.loads(done.stdout)
    right = [a == b for a, b in zip(answer["labels"], test.labels, strict=True)]
    return {"accuracy": sum(right) / len(right), "seconds": round(answer["seconds"], 1)}


def add(row: dict[str, Any]) -> None:
    """Put a row into the record; it replaces the one of the same sample."""
    before: list[dict[str, Any]] = (
        json.loads(RESULT.read_text())["samples"] if RESULT.exists() else []
    )
    same = ("task", "size", "draw", "method")
    rows = [old for old in before if any(old[key] != row[key] for key in same)]
    versions = {method: environments.version(ENVIRONMENT, method) for method in METHODS}
    commit = source_commit() or "unknown"
    write_json(RESULT, {"versions": versions, "commit": commit, "samples": [*rows, row]})


if __name__ == "__main__":
    main()

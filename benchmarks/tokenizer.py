"""What reading a sentence of 12 words costs, beside another tree: python -m benchmarks.tokenizer [OTHER_TREE]

Text to tokens without a tree, as the service reads it, one text at a time: SNLI's sentences of 12 words, in a process
of each tree that are asked in turn. `known`: all words were read before; `new`: the first time. Times are of the
process's processor, medians of the rounds in µs a sentence.
"""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.options import Data, Rounds
from benchmarks.processes import ROOT
from benchmarks.texts import DATA, sentences

WORDS, SENTENCES = 12, 2048
PROGRAM = """
import json, sys, time
from heedful.text.parse import Parser
texts = json.load(sys.stdin)
parser = Parser.load(sys.argv[1])
tokenizer = getattr(parser, "tokenizer", None) or parser._tokenizer
spent = []
for _ in range(4):
    began = time.process_time()
    for text in texts:
        tokenizer.tokenize(text, 256)
    spent.append(1e6 * (time.process_time() - began) / len(texts))
print(json.dumps([spent[0], min(spent[1:])]))
"""


def main(
    other: Annotated[Path | None, typer.Argument(help="The other tree.")] = None,
    rounds: Rounds = 5,
    data: Data = DATA,
) -> None:
    """Measure and print."""
    texts = [text for text in sentences(100_000, data) if len(text.split()) == WORDS][:SENTENCES]
    trees = [ROOT, *([other.resolve()] if other else [])]
    spent: dict[Path, list[list[float]]] = {tree: [] for tree in trees}
    for _ in range(rounds):
        for tree in trees:
            ran = subprocess.run(
                [sys.executable, "-P", "-c", PROGRAM, str(tree / "bundles/parser")],
                input=json.dumps(texts),
                capture_output=True,
                text=True,
                env={**os.environ, "PYTHONPATH": str(tree)},
                check=True,
            )
            spent[tree].append(json.loads(ran.stdout))
    for tree, turns in spent.items():
        new, known = (statistics.median(column) for column in zip(*turns, strict=True))
        typer.echo(f"{tree}: known {known:.1f}, new {new:.1f}")


if __name__ == "__main__":
    typer.run(main)

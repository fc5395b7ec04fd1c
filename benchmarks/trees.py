"""The value of the dependency tree: MS-SAN trained on each parser's trees, and on random trees.

`random` attaches the first parser's tokens of each text to each other at random. A finished run in WORK is
not repeated.

    python -m benchmarks.trees WORK bundles/parser path/to/another/parser
"""

import json
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any
from unittest import mock

import numpy as np
import typer
from rich.console import Console

from benchmarks.records import Row, table, write
from heedful.text.parse import Parser
from heedful.training import checkpoint, prepare
from heedful.training.config import Paths, load, validate
from heedful.training.data_folder import data_folder
from heedful.training.loop import train
from heedful.training.parses import Parsed, parse
from tools.control_scores import random_tree

FOLDER = Path("results/trees")
RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "snli": ("ms-san-snli", {"train_rows": 30_000, "epochs": 2}),
    "sst2": ("ms-san-sst2-alone", {"train_rows": 30_000, "epochs": 2}),
    "stsb": ("ms-san-relatedness-alone", {"task": "stsb", "epochs": 8}),
}
"""Task -> its configuration, and the fields that are changed to make the run smaller."""
SEEDS = (1, 2)


def main(
    work: Annotated[Path, typer.Argument(help="Folder of runs and parses.")],
    parsers: Annotated[list[Path], typer.Argument(help="spaCy pipelines to compare.")],
    tasks: Annotated[list[str], typer.Option(help="Tasks to train.")] = [*RUNS],  # noqa: B006
) -> None:
    """Train what is missing, and write the records."""
    for task in tasks:
        rows: list[Row] = []
        for parser in parsers:
            rows.append({"trees": Parser.load(parser).name, **_scores(work, task, parser)})
        rows.append({"trees": "random", **_scores(work, task, parsers[0], random=True)})
        name, changes = RUNS[task]
        caption = f"100 times the dev score of {task}: {name}.toml with {changes}"
        write("trees", f"What trees are worth: {task}", table(caption, rows), folder=FOLDER / task)


def _scores(work: Path, task: str, parser: Path, *, random: bool = False) -> dict[str, float]:
    """`seed N` -> 100 times the dev score; their mean, and the standard error of one score over its rows."""
    scores, error = {}, 0.0
    for seed in SEEDS:
        trees = "random" if random else parser.as_posix().strip("/").replace("/", "-")
        run = work / f"{task}-{trees}-{seed}"
        record = run / checkpoint.RECORD
        if not record.exists():
            _train(run, task, parser, seed, random=random)
        dev = json.loads(record.read_text())["dev"]
        score, rows = dev["value"], dev["rows"]
        spread = 1 - score**2 if dev["metric"] == "pearson" else (score * (1 - score)) ** 0.5
        error = 100 * spread / rows**0.5
        scores[f"seed {seed}"] = 100 * score
    return {**scores, "mean": float(np.mean([*scores.values()])), "standard error": error}


def _train(run: Path, task: str, parser: Path, seed: int, *, random: bool) -> None:
    file, changes = RUNS[task]
    path = Path("configs") / f"{file}.toml"
    rng = np.random.default_rng(seed)
    config = validate({**load(path), **changes, "seed": seed}, path)

    def parse_or_draw(texts: list[str], **options: Any) -> Parsed:
        parsed = parse(texts, **options)
        if random:
            for start, stop in pairwise(parsed.bounds.tolist()):
                parsed.heads[start:stop] = random_tree(rng, stop - start)
        return parsed

    paths = Paths(run, data_folder(), str(parser), run.parent / "cache", path)
    with mock.patch.object(prepare, "parse", parse_or_draw):
        train(config, paths, resume=True, console=Console())


if __name__ == "__main__":
    typer.run(main)

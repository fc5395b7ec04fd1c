"""A data folder in the official layouts, small enough to train on in a second."""

import gzip
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from heedful.training import loop, tasks
from heedful.training.config import Paths, RunConfig
from tests.builders import BuiltParser
from tests.writing import lines, put, write_rows

tasks.add("tools.tasks")
GOOD = ("good", "great", "lovely", "fine")
BAD = ("bad", "awful", "dull", "poor")


def tree(word: str, label: int) -> str:
    """A sentence whose sentiment is one word's."""
    return f"({label} (2 (2 a) (2 movie)) ({label} (2 is) ({label} {word})))"


def changed(config: RunConfig, **sections: Any) -> RunConfig:
    """`config` with other values; of a section those that are named."""
    fields = config.model_dump()
    for name, value in sections.items():
        inner = isinstance(value, dict) and isinstance(fields.get(name), dict)
        fields[name] = fields[name] | value if inner else value
    return RunConfig.model_validate(fields)


def train(config: RunConfig, paths: Paths, *, resume: bool = False, **more: Any) -> dict[str, Any]:
    """A run that says nothing."""
    quiet = Console(file=io.StringIO())
    return loop.train(config, paths, resume=resume, **{"console": quiet, **more})


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    trees = [tree(w, 4) for w in GOOD] + [tree(w, 0) for w in BAD] + [tree("long", 2)]
    pairs = [
        {"sentence1": "Two kids wash.", "sentence2": "Kids wash.", "gold_label": "entailment"},
        {"sentence1": "Two kids wash.", "sentence2": "A dog barks.", "gold_label": "-"},
        {"sentence1": "A dog.", "sentence2": "A man.", "gold_label": "contradiction"},
    ]
    for split in ("train", "dev", "test"):
        put(folder, f"trees/{split}.txt", "\n".join(trees) + "\n")
        put(folder, f"snli_1.0/snli_1.0_{split}.jsonl", lines(*pairs))
    write_rows(folder, {"imdb/train": [{"text": "the plot is thin thin", "label": "negative"}]})
    surfaces = json.dumps({"movies": "movie", "good": "bad"})
    put(folder, "vectors/surface_to_word.json.gz", gzip.compress(surfaces.encode()))
    words = np.array([*GOOD, *BAD, "movie", "thin"])
    vectors = np.random.default_rng(0).normal(size=(len(words), 12)).astype(np.float16)
    np.savez(folder / "vectors/wordbridge_300d_f16.npz", words=words, vecs=vectors)
    return folder


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def config() -> RunConfig:
    return RunConfig.model_validate(
        {
            "task": "sst2",
            "licence": "CC0-1.0",
            "epochs": 12,
            "patience": 12,
            "encoder": {"name": "ms-san", "config": {"hidden": 12, "dropout": 0.1}},
            "words": {"dim": 12, "background_min_count": 2},
            "head": {"hidden": 8, "dropout": 0.1},
            "optimiser": {"batch": 8, "rate": 0.01, "word_lr": 0.01, "ema_decay": 0.5},
        }
    )


@pytest.fixture(scope="session")
def finished(
    config: RunConfig,
    data: Path,
    pipeline: BuiltParser,
    cache: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Paths:
    """A run that has learned its task, which no test may change."""
    run = tmp_path_factory.mktemp("finished") / "run"
    paths = Paths(run, data, str(pipeline.folder), cache, Path("configs/toy-sst2.toml"))
    train(config, paths)
    return paths


@pytest.fixture
def paths(tmp_path: Path, data: Path, pipeline: BuiltParser, cache: Path) -> Paths:
    file = Path("configs/toy-sst2.toml")
    return Paths(tmp_path / "run", data, str(pipeline.folder), cache, file)

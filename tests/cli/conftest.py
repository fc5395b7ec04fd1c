import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from heedful.export.bundle import TrainedModel, export_bundle
from heedful.runtime.bundles.card import ParserCard, ScoreCard
from heedful.training import tasks
from tests.builders import BuiltParser, build_bundle, build_models, build_parser
from tests.export.trained import WORDS, trained

tasks.add("tools.tasks")


@pytest.fixture(scope="session")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> BuiltParser:
    return build_parser(tmp_path_factory.mktemp("parsers") / "parser")


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of tiny bundles, which no test changes."""
    folder = tmp_path_factory.mktemp("models") / "bundles"
    folder.mkdir()
    parser = build_models(folder)
    build_bundle(folder, parser, name="tiny-related", kind="relatedness", explain=True)
    build_bundle(folder, parser, name="tiny-several", multi_label=True, explain=True)
    return folder


@pytest.fixture
def glove(tmp_path: Path) -> Path:
    """Word vectors of three values."""
    file = tmp_path / "glove.txt"
    words = {"good": 1, "great": 1, "fine": 1, "bad": -1, "awful": -1, "poor": -1, "film": 0}
    file.write_text(
        "".join(f"{word} {value} 0.5 0.{i}\n" for i, (word, value) in enumerate(words.items()))
    )
    return file


@pytest.fixture(scope="session")
def stsb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with STS-B in it, as its readers know it: 30 pairs a split."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "stsb").mkdir()
    rng = np.random.default_rng(0)
    for split in ("dev", "test"):
        rows = []
        for score in range(30):
            a, b = (
                " ".join(f"word{word}" for word in rng.integers(0, WORDS - 2, length))
                for length in rng.integers(1, 12, 2)
            )
            rows.append(json.dumps({"a": a, "b": b, "score": score / 6}))
        (folder / "stsb" / f"{split}.jsonl").write_text("\n".join(rows))
    return folder


@pytest.fixture(scope="module")
def toy(pipeline: BuiltParser) -> TrainedModel:
    """An embedding model of random weights, with an old score on test."""
    return _toy(pipeline)


def _toy(pipeline: BuiltParser) -> TrainedModel:
    parser = ParserCard(name=pipeline.name, fingerprint=pipeline.fingerprint)
    old = ScoreCard(dataset="stsb", split="test", metric="spearman", value=0.9, rows=1)
    return replace(trained("embedding"), task="embed", parser=parser, scores=(old,))


@pytest.fixture(scope="session")
def exported(pipeline: BuiltParser, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle of a `toy`: an export takes ten seconds."""
    folder = tmp_path_factory.mktemp("exported") / "ms-san-toy"
    export_bundle(_toy(pipeline), folder)
    return folder


@pytest.fixture
def bundle(exported: Path, tmp_path: Path) -> Path:
    """A copy of the bundle of a `toy`."""
    return shutil.copytree(exported, tmp_path / exported.name)

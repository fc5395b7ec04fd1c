"""An exported embedding that nobody trained, and STS-B as its readers know it."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from heedful.export.bundle import TrainedModel, export_bundle
from heedful.runtime.bundles.card import ParserCard
from heedful.training import tasks
from tests.builders import BuiltParser
from tests.cli.conftest import models
from tests.export.trained import WORDS, trained

__all__ = ["models"]
tasks.add("tools.tasks")


@pytest.fixture(scope="session")
def stsb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with STS-B in it, as its readers know it: 30 pairs a split."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "stsb").mkdir()
    rng = np.random.default_rng(0)
    for split in ("dev", "test"):
        sides = [[f"word{i}" for i in rng.integers(0, WORDS - 2, 9)] for _ in range(60)]
        texts = [" ".join(one[: 1 + i % 9]) for i, one in enumerate(sides)]
        rows = [{"a": texts[i], "b": texts[-1 - i], "score": i / 6} for i in range(30)]
        (folder / "stsb" / f"{split}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return folder


@pytest.fixture(scope="session")
def toy(pipeline: BuiltParser) -> TrainedModel:
    """An embedding model of random weights."""
    parser = ParserCard(name=pipeline.name, fingerprint=pipeline.fingerprint)
    return replace(trained("embedding"), task="embed", parser=parser)


@pytest.fixture(scope="session")
def exported(toy: TrainedModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle of the `toy`: an export takes ten seconds."""
    folder = tmp_path_factory.mktemp("exported") / "ms-san-toy"
    export_bundle(toy, folder)
    return folder

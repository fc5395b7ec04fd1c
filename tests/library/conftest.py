"""Bundles and a loaded model that the tests of the library share."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import heedful
from heedful.library.model import Model
from tests.process import without_torch


@pytest.fixture(scope="package", autouse=True)
def _no_torch_in_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Workers run without torch, as in the serving install: spaCy would load it in each of them."""
    folder = without_torch(tmp_path_factory.mktemp("no_torch"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
        yield


@pytest.fixture(scope="package")
def model(models: Path) -> Iterator[Model]:
    with heedful.load("tiny-sst2", models=models) as model:
        yield model
